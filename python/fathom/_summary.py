"""``timing``, ``summary`` and ``FATHOM_SUMMARY``: what regions took, as a table, with no recording at all.

Counting begins with ``fathom.summarize()``, or at the first region if FATHOM_SUMMARY is set, which prints the table
when the program ends. The agent counts, in C; here are sums and the table.
"""

import os
import sys

__all__ = ["summarize", "summary", "timing"]

_OFF = ("", "0", "no", "off", "false")


class _Row:
    """A region below the one around it. Times in seconds."""

    __slots__ = ("around", "name", "count", "open", "total", "suspended", "min", "max", "inside")

    def __init__(self, around, name, count, opened, total, suspended, least, most):
        self.around, self.name, self.count, self.open = around, name, count, opened
        self.total, self.suspended, self.min, self.max = total, suspended, least, most
        self.inside = []

    @property
    def mean(self):
        return self.total / self.count if self.count else 0.0


def _rows():
    """All regions, each after the one around it; LookupError if nothing counts."""
    try:
        from fathom._agent import regions_counted
    except ImportError:
        return []
    counted = regions_counted()
    if counted is None:
        raise LookupError("regions are not counted: call fathom.summarize() first, or set FATHOM_SUMMARY=1")
    rows = [_Row(*row) for row in counted]
    for row in rows:
        if row.around >= 0:
            rows[row.around].inside.append(row)
    return rows


def _is_inside_itself(row, rows):
    name = row.name
    while row.around >= 0:
        row = rows[row.around]
        if row.name == name:
            return True
    return False


def timing(name, total=True):
    """Seconds that the region of that name took so far: all visits, or (total=False) one on average.

    Wherever it was entered; 0.0 if it never was. Of a visit that goes on, the time until now counts.
    """
    rows = _rows()
    found = [row for row in rows if row.name == name]
    seconds = sum((row.total for row in found if not _is_inside_itself(row, rows)), 0.0)
    count = sum(row.count for row in found)
    return seconds if total or not count else seconds / count


def summarize():
    """Count regions from now on, so that ``summary()`` and ``timing()`` know them."""
    try:
        from fathom._agent import regions_count
    except ImportError:
        return
    regions_count()


def _duration(seconds):
    for unit, per_second, limit in (("ns", 1e9, 1e-6), ("µs", 1e6, 1e-3), ("ms", 1e3, 1.0)):
        if seconds < limit:
            break
    else:
        return f"{seconds:.3f} s"
    value = seconds * per_second
    return f"{value:.0f} {unit}" if unit == "ns" else f"{value:.3f} {unit}"


def _printable(name):
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name[:200]) or "(no name)"


def _lines(rows, whole):
    """Cells of the table, regions by what they took, each followed by what is inside of it."""
    stack = [(row, 0) for row in sorted((r for r in rows if r.around < 0), key=lambda r: r.total)]
    while stack:
        row, level = stack.pop()
        share = 100 * row.total / whole if whole else 0.0
        ended = row.count > row.open
        yield (str(row.count), _duration(row.total), _duration(row.mean), _duration(row.min) if ended else "-",
               _duration(row.max) if ended else "-", f"{share:.1f} %",
               "  " * min(level, 30) + _printable(row.name) + (f" ({row.open} open)" if row.open else ""))
        stack.extend((inner, level + 1) for inner in sorted(row.inside, key=lambda r: r.total))


def _table(rows, seconds):
    head = ("count", "total", "mean", "min", "max", "share", "region")
    cells = [head, *_lines(rows, seconds)]
    widths = [max(len(row[i]) for row in cells) for i in range(6)]
    return "\n".join("  ".join([*(cell.rjust(width) for cell, width in zip(row, widths)), row[6]]).rstrip()
                     for row in cells)


def _lifetime():
    """Seconds since this process began."""
    import time

    with open("/proc/self/stat", "rb") as stat:
        ticks = int(stat.read().rpartition(b")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def summary(file=None):
    """Print the table of regions: how often each was entered, what it took, and its share of the time that the
    process has lived. What is inside of a region stands below it. To stderr, unless a file is given."""
    rows = _rows()
    out = sys.stderr if file is None else file
    if out is None:
        return
    seconds = _lifetime()
    if not rows:
        print(f"fathom: process {os.getpid()} entered no region in {seconds:.3f} s", file=out)
        return
    print(f"fathom: regions of process {os.getpid()}, {seconds:.3f} s", _table(rows, seconds), sep="\n", file=out,
          flush=True)


def _at_exit(of_process):
    try:
        if os.getpid() == of_process or _rows():  # children of fork that entered none are not worth a word
            summary()
    except (OSError, ValueError, LookupError):  # nobody is there to read it
        pass


def begin_if_asked():
    """Called when the first region is made."""
    if os.environ.get("FATHOM_SUMMARY", "").lower() in _OFF:
        return
    import atexit

    summarize()
    atexit.register(_at_exit, os.getpid())
