"""Timelines as Perfetto's trace and as Chrome's events: what Perfetto's own trace processor makes of them, to the nanosecond.

Of two kinds: the timeline that tests/unit/export_known.h has by hand, and recordings of any length that tests/unit/tool_trace.c makes."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import perfetto
from conftest import PACKAGE
from launch import FATHOM, own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fails, fathom, write

TOOLS = Path(FATHOM).resolve().parent / "tests" / "unit"
START = 5_000_000_000
CALLS = "category in ('python', 'c', 'native', 'region', 'gc')"
SLICES = "select name, ts, dur, depth from slice"
# name, begin, duration, depth, category: by hand, as export_known.h says
KNOWN_CALLS = [("main", 0, 50, 0, "python"), ("main", 100, 1900, 0, "python"), ("Box.f", 200, 800, 1, "python"),
               ("Box.f", 200, 500, 2, "python"), ("<built-in function len>", 300, 0, 3, "c"), ("ph\"ase é", 1000, 500, 1, "region"),
               ("<built-in function len>", 1200, 10, 2, "c"), ("Box.f", 1850, 50, 0, "python"), ("tail", 3000, 1000, 0, "python")]
KNOWN_BESIDE = [("T", 100, 100, "task"), ("T", 200, 100, "task"), ("T", 300, 100, "task"), ("job", 500, 400, "region"),
                ("job", 600, 600, "region"), ("ValueError", 650, 0, "exception"), ("here", 1100, 0, "instant"),
                ("generation", 1600, 0, "gc"), ("fork", 1800, 0, "process"), ("events lost", 2500, 100, "lost")]
PLACES = {"main": " (/srv/app.py:3)", "Box.f": " (/srv/app.py:12)", "tail": " (/srv/b.py:7)"}


def exported(kind: str, path: Path, *choice) -> Path:
    subprocess.run([TOOLS / "tool_export", kind, path, *map(str, choice)], check=True, timeout=300)
    return path


def bare(name: str) -> str:
    return re.sub(r" \(/srv/.*:\d+\)$", "", name)


# ---- the known timeline ----

@pytest.mark.parametrize("kind, start", [("perfetto", START), ("chrome", 0)])
def test_known(kind, start, tmp_path):
    trace = exported(kind, tmp_path / "x")
    rows, = perfetto.ask(trace, "select name, ts, dur, depth, category from slice order by ts")
    found = [(bare(name), ts - start, dur, depth, category) for name, ts, dur, depth, category in rows]
    calls = [row for row in found if row[4] in ("python", "c", "region") and row[0] != "job"]
    assert sorted(calls) == sorted(KNOWN_CALLS)
    beside = [(name, ts, dur, category) for name, ts, dur, _, category in found if (name, ts) not in {c[:2] for c in calls}]
    forked = [("forked", 1850, 0, "process")] if kind == "perfetto" else []
    assert sorted(beside) == sorted(KNOWN_BESIDE + forked)
    if kind == "chrome":
        assert {name for name, *_ in rows} >= {key + value for key, value in PLACES.items()}


def test_known_tracks_of_perfetto(tmp_path):
    trace = exported("perfetto", tmp_path / "x")
    threads, counters, flows, places, clocks, tracks = perfetto.ask(
        trace, "select p.pid, p.name, t.tid, t.name from thread t join process p using (upid) where t.tid != p.pid or p.pid = 9",
        "select ts, value, t.name from counter c join counter_track t on c.track_id = t.id order by ts",
        "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id",
        "select distinct s.name, f.display_value, l.display_value from slice s join args f on f.arg_set_id = s.arg_set_id "
        "join args l on l.arg_set_id = s.arg_set_id where f.key = 'source.file_name' and l.key = 'source.line_number'",
        "select clock_name, clock_value from clock_snapshot where clock_name = 'REALTIME'",
        "select name, count(*) from track where name in ('T', 'job', 'twin') group by name")
    assert sorted(threads) == [(7, "python3 app.py", 8, "main"), (9, "python3 app.py", 9, "Thread 9")]
    assert counters == [(START + 400, 1.5, "level"), (START + 900, -2, "level")]
    assert flows == [("fork", "forked")]
    assert sorted(places) == [("Box.f", "/srv/app.py", "12"), ("main", "/srv/app.py", "3"), ("tail", "/srv/b.py", "7")]
    assert clocks == [("REALTIME", "1700000000000001000")]  # the process began 1000 ns before the timeline
    assert sorted(tracks) == [("T", 2), ("job", 2), ("twin", 1)]


def test_known_tracks_of_chrome(tmp_path):
    trace = exported("chrome", tmp_path / "x")
    threads, counters, flows = perfetto.ask(
        trace, "select p.pid, p.name, t.tid, t.name from thread t join process p using (upid) where t.name is not null",
        "select ts, value from counter order by ts",
        "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id")
    assert sorted(threads) == [(7, "python3 app.py", 8, "main"), (7, "python3 app.py", 8 + 2**30, "twin"),
                               (9, "python3 app.py", 9, "Thread 9")]
    assert counters == [(400, 1.5), (900, -2)]
    assert flows == [("fork", "Box.f (/srv/app.py:12)")]


@pytest.mark.parametrize("choice, names", [
    ((10, 0), {"main", "Box.f", "<built-in function len>", "ph\"ase é", "tail"}),
    ((51, 0), {"main", "Box.f", "ph\"ase é", "tail"}), ((801, 0), {"main", "tail"}), ((2000, 0), set()),
    ((0, 1), {"main", "tail", "Box.f"}), ((60, 1), {"main", "tail"}), ((0, 2), {"main", "Box.f", "ph\"ase é", "tail"})])
def test_known_choice(choice, names, tmp_path):
    """What is left out takes nothing from its callers."""
    events = json.loads(exported("chrome", tmp_path / "x", *choice).read_text())["traceEvents"]
    expected = Counter((name, begin) for name, begin, dur, depth, _ in KNOWN_CALLS
                       if dur >= choice[0] and (not choice[1] or depth < choice[1]))
    assert Counter((bare(e["name"]), round(e["ts"] * 1000)) for e in events if e["ph"] == "B") == expected
    assert {name for name, _ in expected} == names
    assert sum(e["ph"] == "E" for e in events) == expected.total()


def test_known_is_read_back(tmp_path):
    """By Fathom: calls and times of the trees; the thread whose number came again stays another."""
    done = fathom("report", "--json", "-n", "all", exported("chrome", tmp_path / "x"))
    found = {row["qualname"]: (row["calls"], row["total_ns"], row["file"], row["line"])
             for row in json.loads(done.stdout)["functions"]}
    assert found == {"main": (2, 1950, "/srv/app.py", 3), "Box.f": (3, 850, "/srv/app.py", 12),
                     "<built-in function len>": (2, 10, "", 0), "ph\"ase é": (1, 500, "", 0), "tail": (1, 1000, "/srv/b.py", 7)}


# ---- recordings ----

@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("perfetto") / "t.fathom"
    subprocess.run([TOOLS / "tool_trace", path, "30000", "2", "2"], check=True, timeout=300, capture_output=True)
    return path


def converted(recording: Path, out: Path, *options) -> tuple[Path, int]:
    """And how many slices it said that there would be."""
    done = fathom("convert", recording, "-o", out, *options)
    assert done.returncode == 0, done
    return out, int(re.fullmatch(r"fathom convert: (\d+) slices\n", done.stderr.decode())[1])


def spans(path: Path) -> list[tuple]:
    """(pid, tid, name, begin, end, depth) of Chrome's events, matched here."""
    found, open_ = [], {}
    for event in json.loads(path.read_text())["traceEvents"]:
        stack = open_.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append((event["name"], round(event["ts"] * 1000)))
        elif event["ph"] == "E":
            name, begin = stack.pop()
            found.append((event["pid"], event["tid"], name, begin, round(event["ts"] * 1000), len(stack)))
    assert not any(open_.values())
    return found


def test_perfetto_counts_what_was_said(recording, tmp_path):
    trace, said = converted(recording, tmp_path / "x.pftrace")
    (count,), rows, (begin,) = [table[0] if len(table) == 1 else table for table in perfetto.ask(
        trace, f"select count(*) from slice where {CALLS}", SLICES + f" where {CALLS}",
        f"select min(ts) from slice where {CALLS} and depth = 0")]
    _, said_too = converted(recording, tmp_path / "x.chrome.json")
    events = spans(tmp_path / "x.chrome.json")
    first = min(span[3] for span in events)
    own = Counter((re.sub(r" \(.*", "", name), a - first, b - a, depth) for _, _, name, a, b, depth in events)
    theirs = Counter((name, ts - begin, dur, depth) for name, ts, dur, depth in rows)
    assert said == said_too == len(events) > 10_000
    # What collections did, and regions beside the threads, are no calls.
    assert own - theirs == Counter() and count - said == (theirs - own).total()
    assert {name for name, *_ in theirs - own} <= {"generation", *(f"n{i}" for i in range(20))}


def test_chrome_in_perfetto(recording, tmp_path):
    trace, said = converted(recording, tmp_path / "x.chrome.json")
    rows, = perfetto.ask(trace, f"{SLICES} where {CALLS} and track_id in (select id from thread_track) and name != 'generation'")
    assert Counter(rows) == Counter((name, a, b - a, depth) for _, _, name, a, b, depth in spans(trace))
    assert len(rows) == said


VALUES = """
def add(a, b, *, note="none"):
    return a + b

for i in range(5):
    add(i, 10 * i, note='n\u00e9"w')
"""


@pytest.mark.parametrize("ending", ["pftrace", "chrome.json"])
def test_values_in_perfetto(ending, tmp_path):
    """What functions were called with and returned (`--args`, `--returns`), as the processor reads it."""
    script, path = tmp_path / "app.py", tmp_path / "o.fathom"
    script.write_text(VALUES)
    assert fathom("run", "-q", "--trace", "--args", "add", "--returns", "add", "-o", path, script).returncode == 0
    trace, _ = converted(path, tmp_path / f"x.{ending}")
    rows, = perfetto.ask(trace, "select s.id, key, string_value from slice s join args using (arg_set_id) where name like 'add%'"
                                " and (key like 'debug.%' or key like 'args.%') order by ts")
    calls = {}
    for slice_, key, value in rows:
        calls.setdefault(slice_, {})[key.split(".", 1)[1]] = value
    assert list(calls.values()) == [{"a": str(i), "b": str(10 * i), "note": "'n\u00e9\"w'", "return": str(11 * i)} for i in range(5)]


MARKS = """
import fathom, threading
first = fathom.region_begin("job", number=1)
second = fathom.region_begin("job", number=2, of="two")
fathom.instant("now", why="so", often=3)
fathom.instant("bare")
worker = threading.Thread(target=fathom.region_end, args=(second,))
worker.start(); worker.join()
fathom.region_end(first)
"""


@pytest.mark.parametrize("ending", ["pftrace", "chrome.json"])
def test_values_of_marks_in_perfetto(ending, tmp_path, monkeypatch):
    """Those of a region are told by the thread that began it, and the region by that which ended it."""
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    script, path = tmp_path / "app.py", tmp_path / "o.fathom"
    script.write_text(MARKS)
    assert fathom("run", "-q", "--trace", "-o", path, script).returncode == 0
    trace, _ = converted(path, tmp_path / f"x.{ending}")
    rows, = perfetto.ask(trace, "select s.id, name, key, string_value from slice s left join args using (arg_set_id)"
                                " where category in ('region', 'instant') and (key is null or key like 'debug.%' or key like 'args.%')")
    found = {}
    for slice_, name, key, value in rows:
        found.setdefault((slice_, name), {}).update({key.split(".", 1)[1]: value} if key else {})
    marks = [(name, values) for (_, name), values in found.items() if name in ("job", "now", "bare")]
    assert sorted(marks, key=str) == [("bare", {}), ("job", {"number": "1"}), ("job", {"number": "2", "of": "two"}),
                                      ("now", {"often": "3", "why": "so"})]


@pytest.mark.parametrize("options, keep", [
    (["--min-duration", "20us"], lambda a, b, depth: b - a >= 20_000), (["--max-depth", "9"], lambda a, b, depth: depth < 9),
    (["--min-duration", "3us", "--max-depth", "12"], lambda a, b, depth: b - a >= 3_000 and depth < 12)])
def test_choice(options, keep, recording, tmp_path):
    whole, _ = converted(recording, tmp_path / "all.chrome.json")
    part, said = converted(recording, tmp_path / "part.chrome.json", *options)
    expected = Counter(span[:5] for span in spans(whole) if keep(*span[3:]))
    assert Counter(span[:5] for span in spans(part)) == expected
    assert said == expected.total() > 100


@pytest.mark.parametrize("until", ["--to", "--until"])
def test_range(until, recording, tmp_path):
    """Calls that reach over an end are cut there."""
    begin, end = 400_003, 900_001
    whole, _ = converted(recording, tmp_path / "all.chrome.json")
    part, said = converted(recording, tmp_path / "part.chrome.json", "--from", f"{begin}ns", until, f"{end / 1000}us")
    expected = Counter((*span[:3], max(span[3], begin), min(span[4], end)) for span in spans(whole)
                       if span[3] < end and span[4] > begin)
    assert Counter(span[:5] for span in spans(part)) == expected
    assert said == expected.total() > 100


def test_range_in_perfetto(recording, tmp_path):
    trace, said = converted(recording, tmp_path / "x.pftrace", "--from", "400us", "--to", "900us")
    (row,), = perfetto.ask(trace, f"select count(*), max(ts + dur) - min(ts) from slice where {CALLS} and depth < 1000 and "
                                  "track_id in (select id from thread_track) and name != 'generation'")
    assert row == (said, 500_000)


# ---- refused ----

def test_without_a_timeline(tmp_path):
    write(tmp_path / "x.prof", {("a.py", 1, "f"): (1, 1, 0.5, 0.5, {})})
    for name in ("x.pftrace", "x.perfetto", "x.chrome.json"):
        assert "has no timeline" in fails(12, "convert", tmp_path / "x.prof", "-o", tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("options, sentence", [
    (["--from", "5"], "a time needs its unit"), (["--to", "5x"], "a time needs its unit"), (["--until", "s"], "a time needs its unit"),
    (["--max-depth", "0"], "whole number"), (["--max-depth", "x"], "whole number"), (["--min-duration", "0s"], "a time needs its unit"),
    (["--metric", "calls"], "no metric"), (["--to", "pprof", "--from", "1s"], "are of timelines")])
def test_usage(options, sentence, recording, tmp_path):
    assert sentence in fails(2, "convert", recording, "-o", tmp_path / "x.pftrace", *options)


def test_behind_the_end(recording, tmp_path):
    assert "nothing from 3600.000 s on" in fails(10, "convert", recording, "-o", tmp_path / "x.pftrace", "--from", "1h")
