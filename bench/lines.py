"""The profilers of the group `lines`, each made for one freshly loaded program.

The functions of the program are named to line_profiler and to Fathom; pprofile and Fathom's "all"
record every line there is. line_profiler and Fathom also tell how often each line ran, to see that
they recorded the same.
"""

import struct
import sys
import types

# Of a live store, as its header file (src/record/capture/live.h) describes it.
CHUNKS_AT, CHUNK_HEAD, CHUNK_MAGIC, KIND_LINES, LINE_BYTES = 4096, 64, 0x4B4E4843, 6, 384


def functions_of(work):
    """All functions and methods of the file in which `work` is."""
    found = []
    for value in list(work.__globals__.values()):
        members = vars(value).values() if isinstance(value, type) else [value]
        found += [each for each in members if isinstance(each, types.FunctionType)
                  and each.__code__.co_filename == work.__code__.co_filename]
    return found


class LineProfiler:
    def __init__(self, work):
        import line_profiler

        self.profile = line_profiler.LineProfiler()
        for function in functions_of(work):
            self.profile.add_function(function)

    def start(self):
        self.profile.enable_by_count()

    def stop(self):
        self.profile.disable_by_count()

    def calls(self):
        """{line: hits}, here and below."""
        rows = [row for rows in self.profile.get_stats().timings.values() for row in rows]
        return {line: hits for line, hits, _ in rows}


class Fathom:
    def __init__(self, work, patterns=""):
        from fathom import _agent

        self.collector = _agent.Collector(None, 0.0, False, False, patterns)
        if not patterns:
            for function in functions_of(work):
                self.collector.mark_lines(function)
        self.file = work.__code__.co_filename

    def start(self):
        self.collector.enable()

    def stop(self):
        self.collector.disable()

    def calls(self):
        hits = {}
        for store, functions in self.collector.snapshots():
            for function, line, count in line_records(store):
                if getattr(functions.get(function), "co_filename", "") == self.file:
                    hits[line] = hits.get(line, 0) + count
        return hits


def line_records(store):
    """(function, line, hits) of every line record of a live store."""
    at = CHUNKS_AT
    while at + CHUNK_HEAD <= len(store):
        magic, kind, size, used = struct.unpack_from("<IIII", store, at)
        if magic != CHUNK_MAGIC or size < CHUNK_HEAD:
            at += 4096
            continue
        if kind == KIND_LINES:
            first = at + CHUNK_HEAD
            for record in range(first, first + used, LINE_BYTES):
                yield struct.unpack_from("<IIQ", store, record)
        at += size


class Pprofile:
    def __init__(self, _work):
        import pprofile

        self.profile = pprofile.Profile()

    def start(self):
        self.profile.enable()

    def stop(self):
        self.profile.disable()

    def calls(self):
        return None


class LineFloor:
    """The events of lines and calls, for a C function which does nothing or reads a clock."""

    EVENTS = ("PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "LINE")
    TOOL = 4

    def __init__(self, work, clock):
        import fathom_floor

        self.callback = fathom_floor.callback(clock)
        self.codes = [function.__code__ for function in functions_of(work)]

    def start(self):
        mon, events = sys.monitoring, 0
        mon.use_tool_id(self.TOOL, "floor")
        for name in self.EVENTS:
            events |= getattr(mon.events, name)
            mon.register_callback(self.TOOL, getattr(mon.events, name), self.callback)
        for code in self.codes:
            mon.set_local_events(self.TOOL, code, events)

    def stop(self):
        mon = sys.monitoring
        for code in self.codes:
            mon.set_local_events(self.TOOL, code, 0)
        for name in self.EVENTS:
            mon.register_callback(self.TOOL, getattr(mon.events, name), None)
        mon.free_tool_id(self.TOOL)

    def calls(self):
        return None


VARIANTS = {
    "line_profiler": LineProfiler,
    "fathom-lines": Fathom,
    "pprofile": Pprofile,
    "fathom-all": lambda work: Fathom(work, "all"),
    "empty-lines": lambda work: LineFloor(work, False),
    "clock-lines": lambda work: LineFloor(work, True),
}
