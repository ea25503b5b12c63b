"""line_profiler's files: read, added up, written back; nothing in a hostile one is run.

The answers come from Python's own pickle and from numbers written down by hand. Where line_profiler
itself is installed for the Python of the tests, it reads what Fathom wrote, too.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import types

import pytest

from pstats_tools import fails, fathom

NAMES = ("line_profiler._line_profiler", "line_profiler.line_profiler", "_line_profiler")

TIMINGS = {
    ("/app/é.py", 3, "fib"): [(4, 25, 1200), (5, 13, 700), (6, 12, 999_999_999_999)],
    ("/app/é.py", 20, "A.method"): [(21, 1, 5)],
    ("/app/other.py", 1, "never"): [],
}


@pytest.fixture(params=NAMES)
def stats_class(request, monkeypatch):
    """A stand-in for LineStats that pickles under the name it has in a version."""
    for name in NAMES:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "line_profiler", types.ModuleType("line_profiler"))
    LineStats = type("LineStats", (), {"__module__": request.param})
    sys.modules[request.param].LineStats = LineStats
    return LineStats


def write(path, cls, timings=TIMINGS, unit=1e-9, protocol=4):
    stats = cls()
    stats.timings, stats.unit = timings, unit
    path.write_bytes(pickle.dumps(stats, protocol))
    return path


class Reader(pickle.Unpickler):
    """Loads what Fathom wrote, whether line_profiler is here or not."""

    def find_class(self, module, name):
        assert (module, name) == ("line_profiler._line_profiler", "LineStats")
        return type(name, (), {})


def read(path):
    with open(path, "rb") as file:
        stats = Reader(file).load()
    return stats.timings, stats.unit


def convert(*arguments):
    done = fathom("convert", *arguments)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_class_and_protocol(stats_class, protocol, tmp_path):
    source = write(tmp_path / "in", stats_class, protocol=protocol)
    convert(source, "-o", tmp_path / "out.lprof")
    assert read(tmp_path / "out.lprof") == (TIMINGS, 1e-9)


def test_units(stats_class, tmp_path):
    source = write(tmp_path / "in", stats_class, {("a.py", 1, "f"): [(2, 3, 7)]}, unit=1e-6)
    convert(source, "-o", tmp_path / "out.lprof")
    assert read(tmp_path / "out.lprof") == ({("a.py", 1, "f"): [(2, 3, 7000)]}, 1e-9)


def test_added_up(stats_class, tmp_path):
    """As line_profiler's own documentation adds them up, units included."""
    first = write(tmp_path / "a", stats_class,
                  {("s.py", 1, "foo"): [(2, 10, 300)],
                   ("s.py", 10, "bar"): [(11, 2, 1000), (12, 1, 500)]}, 1e-6)
    second = write(tmp_path / "b", stats_class,
                   {("s.py", 10, "bar"): [(11, 10, 20000), (12, 5, 1000)],
                    ("e.py", 5, "baz"): [(5, 2, 5000)]}, 1e-7)
    convert(first, second, "-o", tmp_path / "sum.lprof")
    assert read(tmp_path / "sum.lprof")[0] == {
        ("s.py", 1, "foo"): [(2, 10, 300_000)],
        ("s.py", 10, "bar"): [(11, 12, 3_000_000), (12, 6, 600_000)],
        ("e.py", 5, "baz"): [(5, 2, 500_000)]}


def test_through_a_recording(stats_class, tmp_path):
    source = write(tmp_path / "in", stats_class)
    convert(source, "-o", tmp_path / "x.fathom")
    convert(tmp_path / "x.fathom", "-o", tmp_path / "out.lprof")
    assert read(tmp_path / "out.lprof") == (TIMINGS, 1e-9)


def test_line_profiler_reads_it(stats_class, tmp_path):
    try:
        import importlib.metadata
        version = importlib.metadata.version("line_profiler")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("line_profiler is not installed for this Python")
    source = tmp_path / "code.py"
    source.write_text("def f():\n    a = 1\n    return a\n")
    timings = {(str(source), 1, "f"): [(2, 3, 1000), (3, 3, 3000)]}
    write(tmp_path / "in", stats_class, timings)
    convert(tmp_path / "in", "-o", tmp_path / "out.lprof")
    shown = subprocess.run([sys.executable, "-m", "line_profiler", str(tmp_path / "out.lprof")],
                           capture_output=True, text=True)
    assert shown.returncode == 0, (version, shown.stderr)
    rows = [line.split()[:2] for line in shown.stdout.splitlines()]
    assert ["2", "3"] in rows and ["3", "3"] in rows
    assert "Total time: 4e-06 s" in shown.stdout


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("verb", ["report", "convert"])
def test_hostile(protocol, verb, tmp_path):
    mark = tmp_path / "mark"

    class Evil:
        def __reduce__(self):
            return __import__("os").system, (f"touch {mark}",)

    path = tmp_path / "evil.lprof"
    path.write_bytes(pickle.dumps(Evil(), protocol))
    # One that older protocols do not begin like a profile is not even looked into.
    said = fails(4, verb, path, *(["-o", tmp_path / "out.lprof"] if verb == "convert" else []))
    if protocol >= 2:
        assert "the pickle asks for posix.system, which no profile needs" in said
        assert "nothing in it was run" in said
    assert not mark.exists() and not (tmp_path / "out.lprof").exists()


def test_hostile_inside(stats_class, tmp_path):
    mark = tmp_path / "mark"

    class Evil:
        def __reduce__(self):
            return eval, (f"open({str(mark)!r}, 'w')",)

    path = write(tmp_path / "in", stats_class, {("a.py", 1, "f"): [(1, 1, Evil())]})
    assert "asks for builtins.eval" in fails(4, "report", path)
    assert not mark.exists()


def test_another_pickle(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps({"a": [1, 2]}, 4))
    assert "something else than line_profiler's LineStats" in fails(4, "report", tmp_path / "x")
    (tmp_path / "x").write_bytes(pickle.dumps({1, 2}, 4))
    assert "that no profile needs" in fails(4, "report", tmp_path / "x")


def test_cut_off(stats_class, tmp_path):
    whole = write(tmp_path / "in", stats_class).read_bytes()
    for cut in range(2, len(whole), 7):
        (tmp_path / "cut").write_bytes(whole[:cut])
        assert f"reading {tmp_path / 'cut'}: byte " in fails(5, "report", tmp_path / "cut")


@pytest.mark.parametrize("timings, unit, sentence", [
    ([], 1e-9, "LineStats without timings or unit"),
    ({}, "x", "the timer unit is none"),
    ({"f": []}, 1e-9, "function 1: a key is not (file, first line, function)"),
    ({("a.py", 1, "f"): [(1, "2", 3)]}, 1e-9, "line 1: a number of hits is none"),
    ({("a.py", 1, "f"): [(1, 2, None)]}, 1e-9, "line 1: a time is none"),
    ({("a.py", 1, "f"): [(1, 2, 2**70)]}, 1e-9, "more than 64 bits"),
])
def test_wrong_types(stats_class, timings, unit, sentence, tmp_path):
    assert sentence in fails(5, "report", write(tmp_path / "in", stats_class, timings, unit))


def test_no_lines(tmp_path):
    path = tmp_path / "x.prof"
    path.write_bytes(b"{0")
    assert "there are no lines" in fails(12, "convert", path, "-o", tmp_path / "out.lprof")
    assert not (tmp_path / "out.lprof").exists()
