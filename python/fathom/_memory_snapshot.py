"""``memory_snapshot``: what is alive in this program now, by line and function, and what changed since.

The numbers are those of ``fathom run --memory``: exact (with ``--memory=sampled`` estimates, which say
so), and kept by the heap library anyway, so that asking for them stops nothing. They come as bytes that are taken apart when something is asked of
them, and that are not counted themselves: of a snapshot that is kept the next one has but the object
around them.
"""

import io
import marshal
import os
from collections import namedtuple

try:
    from fathom._agent import memory_alive as _alive
except ImportError:  # no agent for this Python: nothing can record it

    def _alive():
        return None


_TOTALS = ("live", "blocks", "peak", "peak_blocks", "allocated", "allocated_blocks", "own",
           "_sample")  # bytes in which a block was sampled; 0: every block is known
_EMPTY = marshal.dumps(()) * 3


# A line or a function: what it allocated itself that is alive, and that with its callees.
MemoryRow = namedtuple("MemoryRow", "file line function bytes blocks total")


def memory_snapshot():
    """What is alive in this program now, under ``fathom run --memory`` or in ``fathom.memory()``.

    If nothing records the memory of this process, the snapshot is empty (and false), so a program
    that asks runs as well without.
    """
    return MemorySnapshot(_alive())


class _Table:
    """Rows by key, sorted and printed; what both a snapshot and a difference are."""

    __slots__ = ()

    def lines(self, count=None):
        """The lines with most bytes of their own, as ``MemoryRow``; all, or so many."""
        return self._sorted(1, count)

    def functions(self, count=None):
        """The same of whole functions; their ``line`` is where they begin."""
        return self._sorted(2, count)

    @property
    def sampled(self):
        """Bytes in which a block was sampled on average; None if every block is known."""
        return self._sample or None

    def _sorted(self, which, count):
        rows = sorted(self._rows(which), key=lambda row: (-abs(row.bytes), -abs(row.total), row))
        return rows if count is None else rows[:count]

    def __getattr__(self, name):
        try:
            return self._totals()[_TOTALS.index(name)]
        except ValueError:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}") from None

    def table(self, count=10):
        """The first ``count`` lines as text, below the sums."""
        sign = self._sign
        text = [self._title()]
        rows = [row for row in self.lines() if row.bytes][:count]
        if rows:
            text.append(f"\n{'bytes':>10}  {'blocks':>9}  {'total':>10}  line")
        for row in rows:
            place = f"  {os.path.basename(row.file)}:{row.line}" if row.file else ""
            text.append(f"{_size(row.bytes, sign):>10}  {row.blocks:{sign}9,}  "
                        f"{_size(row.total, sign):>10}  {row.function}{place}")
        return "\n".join(text)

    def __str__(self):
        return self.table()


class MemorySnapshot(_Table):
    """What was alive when it was taken.

    live, blocks                 bytes that are allocated, in so many blocks
    peak, peak_blocks            the most there ever were
    allocated, allocated_blocks  all that was allocated since the beginning
    own                          what Fathom itself takes for it in the process; in none of the others
    sampled                      None, or all of these are estimates: one block in so many bytes is known
    """

    __slots__ = ("_data",)
    _sign = ""

    def __init__(self, data):
        self._data = data

    def __bool__(self):
        return self._data is not None

    def _totals(self):
        return marshal.loads(self._data) if self else (0,) * len(_TOTALS)

    def _rows(self, which):
        file = io.BytesIO(self._data or _EMPTY)  # of three tuples, one behind the other
        for _ in range(which):
            marshal.load(file)
        return [MemoryRow(*row) for row in marshal.load(file)]

    def since(self, earlier):
        """What changed since an earlier snapshot."""
        if not isinstance(earlier, MemorySnapshot):
            raise TypeError("the earlier one must be a memory snapshot, too")
        return MemoryDifference(self, earlier)

    def __sub__(self, earlier):
        return self.since(earlier) if isinstance(earlier, MemorySnapshot) else NotImplemented

    def _title(self):
        if not self:
            return "no memory is recorded here: fathom run --memory does"
        about, how = _estimate(self.sampled)
        return (f"{about}{_size(self.live)} in {about}{self.blocks:,} blocks are alive; "
                f"the most were {about}{_size(self.peak)} in {about}{self.peak_blocks:,}{how}")

    def __repr__(self):
        return f"<fathom.MemorySnapshot: {self._title()}>"


class MemoryDifference(_Table):
    """What a later snapshot has more, or less, than an earlier one; numbers may be negative."""

    __slots__ = ("_later", "_earlier")
    _sign = "+"

    def __init__(self, later, earlier):
        self._later, self._earlier = later, earlier

    def __bool__(self):
        return bool(self._later) and bool(self._earlier)

    def _totals(self):
        later, earlier = self._later._totals(), self._earlier._totals()
        return [*(a - b for a, b in zip(later[:-1], earlier)), max(later[-1], earlier[-1])]

    def _rows(self, which):
        changes = {}
        for sign, snapshot in ((1, self._later), (-1, self._earlier)):
            for row in snapshot._rows(which):
                sums = changes.setdefault(row[:3], [0, 0, 0])
                for i, value in enumerate(row[3:]):
                    sums[i] += sign * value
        return [MemoryRow(*key, *sums) for key, sums in changes.items() if any(sums)]

    def _title(self):
        if not self:
            return "no memory is recorded here: fathom run --memory does"
        about, how = _estimate(self.sampled)
        return f"{about}{_size(self.live, '+')} in {about}{self.blocks:+,} blocks{how}"

    def __repr__(self):
        return f"<fathom.MemoryDifference: {self._title()}>"


def _estimate(sampled):
    """What stands before and behind numbers that are estimates."""
    return ("about ", f" (sampled every {_size(sampled)})") if sampled else ("", "")


def _size(count, sign=""):
    """Bytes for people, with three digits, as everywhere in Fathom."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 999.5:
            break
        size, unit = size / 1024, larger
    if unit == "B" or abs(size) >= 99.95:
        return f"{size:{sign}.0f} {unit}"
    return f"{size:{sign}.{1 if abs(size) >= 9.995 else 2}f} {unit}"
