"""The pytest plugin: limits on the memory of tests, and the hungriest of them.

    @pytest.mark.limit_memory("200 MB")
    @pytest.mark.limit_leaks("1 MB")

The markers are pytest-memray's. Numbers are exact. Under ``fathom run --memory -m pytest`` they are of all memory; in a
``pytest`` that was started as usual a recording is begun when tests are collected that need one, of what Python's
allocators give. Where that cannot be, a test with such a marker is skipped and says why: a limit that was not measured
was not kept. docs/pytest.md has it all.
"""

import gc
import io
import marshal
import os
import re
from collections import namedtuple

import pytest

from fathom import _memory_block

try:
    from fathom import _agent
except ImportError:  # no agent for this Python: nothing can record it
    _agent = None

_MARKERS = ("limit_memory", "limit_leaks")
_HELP = {
    "limit_memory": "limit_memory(size, current_thread_only=False): the test fails if its memory ever stands so far "
                    "above what it began with.",
    "limit_leaks": "limit_leaks(size, filter_fn=None): the test fails if some calling context leaves so much behind.",
}
_HOW = "fathom run --memory -m pytest"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_STACKS = 5  # shown
_FRAMES = 8  # of each
_CACHE = "fathom/peaks"
_CACHE_LATE = "fathom/peaks-python"  # which are lower where extensions allocate
_NOT_SEEN = f"what extensions take from malloc by themselves is not in these numbers: {_HOW} sees it"
_TOLERANCE = 1.01  # of --fathom-fail-on-increase

StackFrame = namedtuple("StackFrame", "function filename lineno")


class Stack:
    """What a ``filter_fn`` is given: ``frames``, the innermost first, and ``bytes``."""

    def __init__(self, frames, size):
        self.frames = frames
        self.bytes = size


def parse_size(text):
    """ "200 MB" → bytes; units are of 1024."""
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise ValueError(f"{text!r} is no size: \"200 MB\", \"1.5 GiB\"")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _size(count, digits=3):
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 999.5:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.{digits}g} {unit}"


def _sizes(*counts):
    """Two sizes, with as many digits as it takes to tell them apart."""
    for digits in range(3, 17):
        shown = [_size(count, digits) for count in counts]
        if shown[0] != shown[1]:
            break
    return shown


# ---- calling contexts


_ALIVE, _PEAK = 0, 1


def _contexts(data, column):
    """{path: bytes}: a path is (function, line, path of the caller); of what is alive, or was at the peak."""
    data = io.BytesIO(data)
    functions, nodes = marshal.load(data), marshal.load(data)
    paths, table = [], {}
    for parent, function, line, *numbers in nodes:
        path = (functions[function], line, paths[parent]) if parent >= 0 else None
        paths.append(path)
        if path and numbers[column]:
            table[path] = table.get(path, 0) + numbers[column]
    return table


def _stack(path):
    frames = []
    while path:
        (file, name), line, path = path
        frames.append(StackFrame(name, file, line))
    for at, frame in enumerate(frames):  # what calls the test is pytest's
        if at and frame.filename.endswith("_pytest/python.py"):
            return tuple(frames[:at])
    return tuple(frames)


def _grown(now, before, least):
    """Stacks that have so much more alive than before, the largest first."""
    before = _contexts(before, _ALIVE)
    changes = [(size - before.get(path, 0), path) for path, size in _contexts(now, _ALIVE).items()]
    changes = sorted((change for change in changes if change[0] >= least), key=lambda change: -change[0])
    return [Stack(_stack(path), size) for size, path in changes]


def _held(now, test, least):
    """Stacks of a test with so much at its peak, the largest first: what it called, and what threads did. What was alive
    before a test began is below other calls; to look at that before each test, to subtract it, would take longer than most
    tests do."""
    held = [(size, path) for path, size in _contexts(now, _PEAK).items() if size >= least and _is_of(path, test)]
    return [Stack(_stack(path), size) for size, path in sorted(held, key=lambda stack: -stack[0])]


def _is_of(path, test):
    while path:
        (file, name), _, path = path
        if (os.path.basename(file), name.rpartition(".")[2]) == test:
            return True
    return file.endswith("threading.py")


def _shown(stacks):
    lines = []
    for stack in stacks[:_STACKS]:
        for at, frame in enumerate(stack.frames[:_FRAMES]):
            amount = _size(stack.bytes) if at == 0 else ""
            lines.append(f"{amount:>10}  {frame.function}  {frame.filename}:{frame.lineno}")
        if len(stack.frames) > _FRAMES:
            lines.append(f"{'':>10}  … {len(stack.frames) - _FRAMES} more")
    if len(stacks) > _STACKS:
        lines.append(f"{'':>10}  … and {len(stacks) - _STACKS} smaller ones")
    return "\n".join(lines)


# ---- one test


class _Limits:
    """What the markers of a test ask for."""

    def __init__(self, item):
        self.memory = self.leaks = self.filter = None
        self.current_thread_only = False
        for marker in item.iter_markers("limit_memory"):
            self.memory, self.current_thread_only = _arguments(marker, "current_thread_only", False)
            break
        for marker in item.iter_markers("limit_leaks"):
            self.leaks, self.filter = _arguments(marker, "filter_fn", None)
            break

    def __bool__(self):
        return self.memory is not None or self.leaks is not None


def _arguments(marker, keyword, default):
    unknown = set(marker.kwargs) - {keyword}
    if len(marker.args) != 1 or unknown:
        raise ValueError(f"{marker.name} takes a size, and {keyword}")
    return parse_size(marker.args[0]), marker.kwargs.get(keyword, default)


class _Measurement:
    """Measures one call of a test; ``failure`` is what its limits say to that."""

    def __init__(self, limits, item):
        from fathom import region

        self._limits = limits
        self._region = region(item.nodeid)
        self._test = os.path.basename(item.path), item.originalname or item.name
        self.peak = self.failure = None
        if limits:
            gc.collect()
        if limits.leaks is not None:
            self._before = _agent.memory_contexts()  # as bytes, which are not counted themselves
        self._region.__enter__()
        self._start = _agent.stretch_begin()

    def end(self):
        highest, own = _agent.stretch_peak(), self._own_peak()
        self._region.__exit__(None, None, None)
        if min(self._start, highest, own) < 0:
            self._fail_unmeasured()
            return
        self.peak = highest - self._start
        peak = own if self._limits.current_thread_only else self.peak
        too_much = self._limits.memory is not None and peak >= self._limits.memory
        now = _agent.memory_contexts() if too_much else None
        _agent.stretch_end()
        if too_much:
            stacks = _held(now, self._test, max(peak // 100, 1))
            limit, had = _sizes(self._limits.memory, peak)
            self.failure = (f"the test is limited to {limit} of memory, and had {had}"
                            f" at its peak:\n\n{_shown(stacks)}")
        elif self._limits.leaks is not None:
            self._check_leaks()

    def _own_peak(self):
        if not self._limits.current_thread_only:
            return 0
        of_region = self._region._peak()  # of a run; others have no regions
        return of_region if of_region >= 0 else _agent.stretch_own_peak()

    def _fail_unmeasured(self):
        _agent.stretch_end()
        if self._limits:
            self.failure = "the recording of memory ended before the test did, so its limits are not checked"

    def _check_leaks(self):
        gc.collect()
        wanted = self._limits.filter or (lambda stack: True)
        stacks = _grown(_agent.memory_contexts(), self._before, max(self._limits.leaks, 1))
        leaks = [stack for stack in stacks if wanted(stack)]
        if leaks:
            self.failure = (f"the test may leave {_size(self._limits.leaks)} behind in one place, and left more in "
                            f"{len(leaks)}:\n\n{_shown(leaks)}")


def _is_recorded():
    if _agent is None or _agent.stretch_begin() < 0:
        return False
    _agent.stretch_end()
    return True


class _LateRecording:
    """Of a session that nobody records; ``why_not`` says why there is none."""

    def __init__(self):
        self._folder, self._process, self.why_not = None, os.getpid(), None
        try:
            self._folder = _memory_block.begin()
        except (ImportError, OSError, RuntimeError) as error:
            self.why_not = str(error)
        if self._folder and not _is_recorded():
            self.end()
        if not self._folder and not self.why_not:
            self.why_not = "something else records it, and not every block or not for this session"

    def end(self):
        if self._folder and self._process == os.getpid():  # not a child that was forked in a test
            _memory_block.end(self._folder)
            self._folder = None


# ---- pytest


class FathomPlugin:
    def __init__(self, config):
        self.config = config
        self.recorded = _is_recorded()
        self.recording, self.why_not, self.late = None, _HOW, False
        self.summary = config.getoption("--fathom-memory")
        self.increase = config.getoption("--fathom-fail-on-increase")
        self.peaks, self.unmeasured = {}, 0
        self.known = {}

    def _cache(self):
        cache = getattr(self.config, "cache", None)
        return cache if self.increase else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        """Begin a recording if there is none and some test needs it; with xdist, in the workers."""
        needed = self.summary or self.increase or any(
            item.get_closest_marker(name) for item in session.items for name in _MARKERS)
        if needed and session.items and not self.recorded and not self.config.option.collectonly:
            self.recording = _LateRecording()
            self.recorded = self.late = not self.recording.why_not
            self.why_not = f"{self.recording.why_not}; {_HOW}"
        if self._cache():
            self.known = self._cache().get(_CACHE_LATE if self.late else _CACHE, {})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        limits, wrong = None, None
        try:
            limits = item.fathom_limits = _Limits(item)
        except ValueError as error:
            wrong = str(error)
        if wrong:
            pytest.fail(wrong, pytrace=False)
        if limits and not self.recorded:
            what = f"the memory of this process is not recorded, so its limits are not checked: {self.why_not}"
            if self.config.getoption("--fathom-unmeasured") == "fail":
                pytest.fail(what, pytrace=False)
            elif self.config.getoption("--fathom-unmeasured") == "skip":
                pytest.skip(what)
            else:
                item.fathom_unmeasured = True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        limits = getattr(pyfuncitem, "fathom_limits", None)
        measured = None
        if self.recorded and (limits or self.summary or self.increase):
            measured = _Measurement(limits if limits is not None else _Limits(pyfuncitem), pyfuncitem)
        try:
            yield
        finally:
            if measured:
                measured.end()
                pyfuncitem.fathom_measured = measured

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report, measured = outcome.get_result(), getattr(item, "fathom_measured", None)
        if call.when != "call":
            return
        report.fathom_unmeasured = getattr(item, "fathom_unmeasured", False)
        if not measured:
            return
        report.fathom_peak, report.fathom_late = measured.peak, self.late  # also from a worker
        failure = measured.failure
        known = self.known.get(item.nodeid)
        if failure is None and known is not None and (measured.peak or 0) > known * _TOLERANCE + 1024:
            now, before = _sizes(measured.peak, known)
            failure = f"the test had {now} at its peak, and {before} the last time"
        if failure and report.passed:
            report.outcome, report.longrepr = "failed", f"fathom: {failure}"

    def pytest_runtest_logreport(self, report):
        peak = getattr(report, "fathom_peak", None)
        self.unmeasured += getattr(report, "fathom_unmeasured", False)
        self.late |= getattr(report, "fathom_late", False)
        if peak is not None:
            self.peaks[report.nodeid] = peak, report.outcome

    def pytest_sessionfinish(self, session):
        if self.recording:
            self.recording.end()
        cache, key = self._cache(), _CACHE_LATE if self.late else _CACHE
        if cache and not hasattr(self.config, "workerinput"):
            passed = {name: peak for name, (peak, outcome) in self.peaks.items() if outcome == "passed"}
            cache.set(key, {**cache.get(key, {}), **passed})

    def pytest_terminal_summary(self, terminalreporter):
        write = terminalreporter.write_line
        if self.unmeasured:
            write(f"fathom: the memory of {self.unmeasured} tests with limits was not measured: {self.why_not}", yellow=True)
        if self.summary:
            terminalreporter.section("memory")
            self._list_peaks(write)
        if self.late and self.peaks:
            write(f"fathom: {_NOT_SEEN}")

    def _list_peaks(self, write):
        if not self.peaks:
            write(f"fathom: no memory was measured: {self.why_not}", yellow=True)
        most = self.config.getoption("--fathom-most")
        for name, (peak, _) in sorted(self.peaks.items(), key=lambda entry: -entry[1][0])[:most]:
            write(f"{_size(peak):>10}  {name}")


def pytest_addoption(parser):
    group = parser.getgroup("fathom", "memory of tests, by Fathom")
    group.addoption("--fathom-memory", action="store_true", help="list the tests that needed most memory")
    group.addoption("--fathom-most", type=int, default=5, metavar="N", help="… so many of them (5)")
    group.addoption("--fathom-fail-on-increase", action="store_true",
                    help="fail tests that need more memory than the last time, by more than 1 percent")
    group.addoption("--fathom-unmeasured", choices=("skip", "fail", "run"), default="skip",
                    help="what to do with tests that have limits where no memory is recorded (skip)")


def pytest_configure(config):
    for name in _MARKERS:
        config.addinivalue_line("markers", _HELP[name])
    if config.pluginmanager.hasplugin("memray"):
        return  # the markers are its own
    config.pluginmanager.register(FathomPlugin(config), "fathom-memory")
