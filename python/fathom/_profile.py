"""``Profile``, which drops in for ``cProfile.Profile``, and ``profile``, one line for applications.

Recording, and turning a recording into tables, is done in C (``fathom._agent``); this module only
gives it the shape that users of cProfile know.
"""

import functools
import marshal
import os
import sys
import sysconfig
from collections import namedtuple

try:
    from fathom import _agent
except ImportError as error:
    raise ImportError(
        "fathom was installed without an agent for this Python "
        f"({sys.version.split()[0]}, {sysconfig.get_config_var('SOABI')})"
    ) from error

_Entry = namedtuple(
    "profiler_entry", "code callcount reccallcount totaltime inlinetime calls"
)
_SubEntry = namedtuple(
    "profiler_subentry", "code callcount reccallcount totaltime inlinetime"
)


class Profile:
    """Records every call of this process between ``enable()`` and ``disable()``.

    All methods of ``cProfile.Profile`` are here with the same meaning; ``stats`` holds the same
    dictionary. Unlike there, other threads are recorded too, each with a stack of its own, and
    functions that look alike are added up in ``stats`` instead of replacing each other.
    """

    def __init__(self, timer=None, timeunit=0.0, subcalls=True, builtins=True):
        self._collector = _agent.Collector(timer, timeunit or 0.0, builtins)
        self._subcalls = subcalls
        self._builtins = builtins

    # ---- recording

    def enable(self, subcalls=True, builtins=True):
        """Start (or go on) recording."""
        self._subcalls = self._subcalls and subcalls
        self._collector.enable(bool(self._builtins and builtins))

    def disable(self):
        """Stop recording. Calls that are still open end now."""
        self._collector.disable()

    def clear(self):
        """Forget everything recorded so far."""
        self._collector.clear()

    def __enter__(self):
        self.enable()
        return self

    def __exit__(self, *exc_info):
        self.disable()

    def run(self, cmd):
        """Profile a statement in the namespace of ``__main__``."""
        import __main__

        return self.runctx(cmd, __main__.__dict__, __main__.__dict__)

    def runctx(self, cmd, globals, locals):
        """Profile a statement in the given namespaces."""
        self.enable()
        try:
            exec(cmd, globals, locals)
        finally:
            self.disable()
        return self

    def runcall(self, func, /, *args, **kw):
        """Profile one call and return its result."""
        self.enable()
        try:
            return func(*args, **kw)
        finally:
            self.disable()

    # ---- results

    def create_stats(self):
        """Stop recording and fill ``stats``."""
        self.disable()
        self.snapshot_stats()

    def snapshot_stats(self):
        """Fill ``stats`` without stopping."""
        stats = marshal.loads(_agent.convert(self._collector.snapshots(), "pstats"))
        if not self._subcalls:
            stats = {key: row[:4] + ({},) for key, row in stats.items()}
        self.stats = stats

    def dump_stats(self, file):
        """Write the profile; the name chooses the format.

        ``x.fathom`` becomes a recording, any other name a pstats file as cProfile writes it. An
        existing file is replaced, as cProfile does.
        """
        if os.fspath(file).endswith(".fathom"):
            self.disable()
            _agent.save(self._collector.snapshots(), file, True)
            return
        self.create_stats()
        with open(file, "wb") as f:
            marshal.dump(self.stats, f)

    def print_stats(self, sort=-1):
        """Print the table of pstats."""
        import pstats

        if not isinstance(sort, tuple):
            sort = (sort,)
        pstats.Stats(self).strip_dirs().sort_stats(*sort).print_stats()

    def getstats(self):
        """A list of profiler_entry, as from ``cProfile.Profile.getstats()``."""
        snapshots = self._collector.snapshots()
        rows = marshal.loads(_agent.convert(snapshots, "entries"))
        codes = {}
        for _, functions in snapshots:
            codes.update(_codes_by_label(functions))
        names = [codes.get(row[0], row[0][2]) for row in rows]
        return [self._entry(row, names, code) for row, code in zip(rows, names)]

    def _entry(self, row, names, code):
        calls = [_SubEntry(names[edge[0]], *edge[1:]) for edge in row[5]]
        return _Entry(code, *row[1:5], calls if calls and self._subcalls else None)


def _codes_by_label(functions):
    """The code objects (or names of builtins) seen, by the label that the tables give them."""
    labels = {}
    seen = {}
    for _, code in sorted(functions.items()):
        if isinstance(code, str):
            label = ("", 0, code, code)
        else:
            label = (code.co_filename, code.co_firstlineno, code.co_name, code.co_qualname)
        twin = seen.get(label, 0)
        seen[label] = twin + 1
        labels[label + (twin, int(isinstance(code, str)))] = code
    return labels


def run(statement, filename=None, sort=-1):
    """Profile a statement; print the table or write it to a file (``cProfile.run``)."""
    import __main__

    return runctx(statement, __main__.__dict__, __main__.__dict__, filename, sort)


def runctx(statement, globals, locals, filename=None, sort=-1):
    """Profile a statement in the given namespaces (``cProfile.runctx``)."""
    prof = Profile()
    try:
        prof.runctx(statement, globals, locals)
    except SystemExit:
        pass
    if filename is not None:
        prof.dump_stats(filename)
    else:
        prof.print_stats(sort)


class profile:
    """Record a block or a function into a file: ``with fathom.profile("out.fathom"): …``.

    The name chooses the format: ``.fathom`` for a recording, ``.prof`` or ``.pstats`` for pstats. An
    existing file is not overwritten unless ``overwrite`` is true. With an empty ``path`` (None or
    ""), nothing is done at all, so an application offers ``--profile FILE`` in one line::

        with fathom.profile(options.profile):
            main(options)
    """

    def __init__(self, path=None, *, builtins=True, overwrite=False):
        self._path = os.fspath(path) if path else None
        self._builtins = builtins
        self._overwrite = overwrite
        self._collectors = []

    def __enter__(self):
        if self._path:
            if os.path.exists(self._path) and not self._overwrite:
                raise FileExistsError(f"fathom: {self._path} exists and is not overwritten")
            collector = _agent.Collector(None, 0.0, self._builtins)
            collector.enable()
            self._collectors.append(collector)
        return self

    def __exit__(self, *exc_info):
        if self._collectors:
            collector = self._collectors.pop()
            collector.disable()
            _agent.save(collector.snapshots(), self._path, self._overwrite)

    def __call__(self, func):
        if not self._path:
            return func

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return wrapper
