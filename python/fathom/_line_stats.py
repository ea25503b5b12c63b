"""``LineStats``: line times as line_profiler has them, read, written, added up and printed.

The table is line_profiler's own, to the byte, so that whatever reads its output reads this too. Files
are read by an unpickler that knows one class and calls nothing.
"""

import inspect
import linecache
import os
import pickle
import sys

# A pickled LineStats is this, the pickled dictionary of its attributes, and BUILD. The class is the one
# that line_profiler 3 and later find.
_PICKLE_START = b"\x80\x02cline_profiler._line_profiler\nLineStats\n)\x81"
_PICKLE_END = b"b."

_CLASSES = {
    ("_line_profiler", "LineStats"),
    ("line_profiler._line_profiler", "LineStats"),
    ("line_profiler.line_profiler", "LineStats"),
}


class LineStats:
    """``timings``: {(file, first line, function): [(line, hits, time), …]}; ``unit``: of time, in s."""

    def __init__(self, timings, unit):
        self.timings = timings
        self.unit = unit

    def __repr__(self):
        return f"{type(self).__name__}({self.timings}, {self.unit:.2G})"

    def __eq__(self, other):
        try:
            return self.timings == other.timings and self.unit == other.unit
        except AttributeError:
            return NotImplemented

    __hash__ = None

    def __add__(self, other):
        return type(self).from_stats_objects(self, other)

    def __iadd__(self, other):
        total = self + other
        self.timings, self.unit = total.timings, total.unit
        return self

    @classmethod
    def from_stats_objects(cls, stats, /, *more):
        """The sum of several; the coarsest unit among them is the unit of the result."""
        parts = sorted((stats, *more), key=lambda part: part.unit)
        unit = parts[-1].unit
        sums = {}
        for part in parts:
            factor = part.unit / unit
            for key, rows in part.timings.items():
                lines = sums.setdefault(key, {})
                for line, hits, time in rows:
                    old_hits, old_time = lines.get(line, (0, 0))
                    lines[line] = (old_hits + hits, old_time + time * factor)
        return cls({key: [(line, hits, round(time)) for line, (hits, time) in sorted(lines.items())]
                    for key, lines in sums.items()}, unit)

    @classmethod
    def from_files(cls, file, /, *files):
        """Read .lprof files, of Fathom or of line_profiler, and add them up."""
        parts = []
        for name in (file, *files):
            with open(name, "rb") as f:
                parts.append(from_pickle(f.read()))
        return cls.from_stats_objects(*parts)

    def to_file(self, filename):
        """Write a .lprof file that line_profiler reads."""
        body = pickle.dumps({"timings": self.timings, "unit": self.unit}, protocol=2)
        with open(filename, "wb") as f:
            f.write(_PICKLE_START + body[2:-1] + _PICKLE_END)

    def print(self, stream=None, output_unit=None, stripzeros=False, details=True, summarize=False,
              sort=False, rich=False, *, config=None):
        """Print the tables, as line_profiler's show_text does. ``config`` is not looked at."""
        stream = sys.stdout if stream is None else stream
        shown = self.unit if output_unit is None else output_unit
        stream.write("Timer unit: %g s\n\n" % shown)
        functions = list(self.timings.items())
        if sort:
            functions.sort(key=lambda item: sum(row[2] for row in item[1]))
        if details:
            for key, rows in functions:
                if rows or not stripzeros:
                    _print_function(stream, key, rows, self.unit, shown, rich)
        if summarize:
            _print_summary(stream, functions, self.unit, stripzeros, rich)


def from_pickle(data):
    """The LineStats of a .lprof file's content; ValueError if it is none."""
    import io

    try:
        stats = _Unpickler(io.BytesIO(data)).load()
        for (file, first, name), rows in stats.timings.items():
            if not isinstance(file, str) or not isinstance(name, str):
                raise TypeError("a key is not (file, line, name)")
            for line, hits, time in rows:
                first + line + hits + time
        stats.unit * 1.0
    except Exception as error:
        raise ValueError(f"not a file of line times (.lprof): {error}") from error
    return stats


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) in _CLASSES:
            return LineStats
        raise pickle.UnpicklingError(f"it holds an object of {module}.{name}")


# ---- the table

_WIDTHS = (6, 9, 12, 8, 8)
_HEADER = ("Line #", "Hits", "Time", "Per Hit", "% Time")


def _source(filename, first, name):
    """The lines of a function, or None when nobody has them."""
    linecache.checkcache(filename)
    source = linecache.getlines(filename)
    if not source:
        return [] if os.path.exists(filename) else None
    if name == "<module>":
        return source[first - 1:]
    return inspect.getblock(source[first - 1:]) if first <= len(source) else []


def _cells(rows, scale):
    """{line: its numbers as text}; what would not fit its column is given in fewer digits."""
    total = sum(row[2] for row in rows)

    def fit(value, width):
        text = "%5.1f" % value
        return text if len(text) <= width else "%5.3g" % value

    cells = {}
    for line, hits, time in rows:
        count = "%d" % hits
        cells[line] = (
            count if len(count) <= _WIDTHS[1] else "%g" % hits,
            fit(time * scale, _WIDTHS[2]),
            fit(float(time) * scale / hits, _WIDTHS[3]) if hits else "",
            "%5.1f" % (100 * time / total) if total else "",
        )
    return cells


def _print_function(stream, key, rows, unit, shown, rich):
    filename, first, name = key
    stream.write("Total time: %g s\n" % (sum(row[2] for row in rows) * unit))
    source = _source(filename, first, name)
    if source is not None:
        stream.write(f"File: {filename}\nFunction: {name} at line {first}\n")
    else:
        stream.write(f"\nCould not find file {filename}\n"
                     "Are you sure you are running this program from the same directory\n"
                     "that you ran the profiler from?\n"
                     "Continuing without the function's contents.\n")
        numbers = [row[0] for row in rows]
        source = [""] * (max(numbers) - min(*numbers, first) + 1 if numbers else 1)
    cells = _cells(rows, unit / shown)
    widths = [max([width, *(len(row[i - 1]) for row in cells.values())] if 0 < i < 4 else [width])
              for i, width in enumerate(_WIDTHS)]
    left = " ".join("%{}s".format(width) for width in widths)
    header = left % _HEADER + "  Line Contents"
    stream.write("\n" + header + "\n" + "=" * len(header) + "\n")
    table = [(left % (first + i, *cells.get(first + i, ("", "", "", ""))), text.rstrip("\r\n"))
             for i, text in enumerate(source)]
    if not (rich and _print_rich(stream, table)):
        for numbers, text in table:
            _write(stream, numbers + "  " + text + "\n")
    stream.write("\n")


def _write(stream, text):
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


def _print_rich(stream, table):
    """The same in colours, by the package rich; False if it is not installed."""
    try:
        from rich.console import Console
        from rich.highlighter import ReprHighlighter
        from rich.syntax import Syntax
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    numbers = Text("\n".join(row[0] for row in table))
    ReprHighlighter().highlight(numbers)
    source = Syntax("\n".join(row[1] for row in table), "python", background_color="default")
    grid = Table(box=None, padding=0, collapse_padding=True, show_header=False, show_footer=False,
                 show_edge=False, pad_edge=False, expand=False)
    grid.add_row(numbers, "  ", source)
    Console(file=stream, soft_wrap=True, color_system="standard").print(grid)
    return True


def _print_summary(stream, functions, unit, stripzeros, rich):
    console = None
    if rich:
        try:
            from rich.console import Console
            from rich.markup import escape

            console = Console(file=stream, soft_wrap=True, color_system="standard")
        except ImportError:
            pass
    for (file, first, name), rows in functions:
        seconds = sum(row[2] for row in rows) * unit
        if stripzeros and not seconds:
            continue
        if console:
            file, name = f"[link={file}]{escape(file)}[/link]", escape(name)
        line = "%6.2f seconds - %s:%s - %s" % (seconds, file, first, name)
        if console:
            console.print(line)
        else:
            stream.write(line + "\n")
