"""Chrome's trace events: what viztracer recorded is what Fathom shows of it, and broken files are read as far as they go.

tests/golden/viztracer/1.1.1.json was recorded by viztracer 1.1.1 of recorded.py there; folders were replaced, and the sources of
the standard library left out."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from launch import own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fails, fathom, table

GOLDEN = Path(__file__).parent.parent / "golden" / "viztracer" / "1.1.1.json"


def spans(path: Path) -> list[dict]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


def ns(event: dict, *keys) -> int:
    return sum(round(event[key] * 1000) for key in keys)


def shown(path: Path) -> dict[str, dict]:
    rows = table(path, "-n", "all")["functions"]
    return {row["qualname"]: row for row in rows}


def name(event: dict) -> str:
    return event["name"].rsplit(" (", 1)[0]


def test_every_call_is_there():
    found = shown(GOLDEN)
    assert Counter({key: row["calls"] for key, row in found.items()}) == Counter(
        name(event) for event in spans(GOLDEN))
    # By hand: fib(4) has 9 calls, work ran in three threads; the generator is entered once for each value, and left.
    assert {key: found[key]["calls"] for key in ("fib", "work", "Box.fill", "numbers", "phase")} == {
        "fib": 27, "work": 3, "Box.fill": 3, "numbers": 12, "phase": 1}
    assert (found["work"]["file"], found["work"]["line"]) == ("/srv/recorded.py", 21)


def test_times_are_those_of_the_file():
    found, events = shown(GOLDEN), spans(GOLDEN)
    for function in ("work", "Box.fill", "phase", "builtins.sorted", "Thread.start"):
        took = [ns(event, "dur") for event in events if name(event) == function]
        row = found[function]
        assert (row["total_ns"], row["min_ns"], row["max_ns"]) == (sum(took), min(took), max(took)), function


def test_self_times_add_up_to_the_outermost_calls():
    """Computed in another way: calls that no other call of their thread contains."""
    events = spans(GOLDEN)
    outermost = sum(ns(a, "dur") for a in events if not any(
        b is not a and (a["pid"], a["tid"]) == (b["pid"], b["tid"]) and b["ts"] <= a["ts"]
        and ns(a, "ts", "dur") <= ns(b, "ts", "dur") for b in events))
    assert sum(row["self_ns"] for row in shown(GOLDEN).values()) == outermost


def test_threads_of_one_name_stay_apart():
    rows = table(GOLDEN, "--threads")["threads"]
    assert sorted(row["name"] for row in rows) == ["MainThread", "twin", "twin"]
    assert {row["thread"] for row in rows} == {event["tid"] for event in spans(GOLDEN)}


def test_the_source_comes_with_it():
    """Its file is nowhere on this machine."""
    done = fathom("report", GOLDEN, "--source=work")
    assert b"Box().fill([2, 3, 1])" in done.stdout


def test_packed_and_under_any_name(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(GOLDEN.read_bytes()))
    assert shown(tmp_path / "x") == shown(GOLDEN)


@pytest.mark.parametrize("form", ["object", "list"])
def test_cut_off(form, tmp_path):
    """A tracer that was killed left whole events, and half of one."""
    lines = GOLDEN.read_text().splitlines()
    events = [event for event in (json.loads(line.rstrip(",]").removeprefix('{"traceEvents": ['))
                                  for line in lines[:40])]
    text = "[" + ",\n".join(map(json.dumps, events)) if form == "list" else "\n".join(lines[:40])
    (tmp_path / "x.json").write_text(text + ',\n{"ph": "X", "name": "half')
    found = shown(tmp_path / "x.json")
    assert sum(row["calls"] for row in found.values()) == sum(e["ph"] == "X" for e in events) > 20
    assert "ends before its list of events does" in fathom("report", tmp_path / "x.json").stdout.decode()


def test_to_another_format(tmp_path):
    done = fathom("convert", GOLDEN, "-o", tmp_path / "x.fathom")
    assert (done.returncode, done.stderr) == (0, b"")
    again = shown(tmp_path / "x.fathom")
    assert {key: row["calls"] for key, row in again.items()} == {
        key: row["calls"] for key, row in shown(GOLDEN).items()}


def beside(path: Path) -> list[tuple]:
    """Instants and counters, as (ph, name, value)."""
    return [(e["ph"], e["name"], e["args"].get("value") if e["ph"] == "C" else None)
            for e in json.loads(path.read_text())["traceEvents"] if e["ph"] in "iC"]


def test_the_timeline_is_that_of_the_file(tmp_path):
    """Through Fathom's own file and back: every call of every thread, to the nanosecond."""
    for source, out in ((GOLDEN, "x.fathom"), (tmp_path / "x.fathom", "y.chrome.json")):
        assert fathom("convert", source, "-o", tmp_path / out).returncode == 0
    first = min(ns(event, "ts") for event in spans(GOLDEN))
    expected = Counter((e["tid"], e["name"], ns(e, "ts") - first, ns(e, "ts", "dur") - first) for e in spans(GOLDEN))
    found, open_ = Counter(), {}
    for event in json.loads((tmp_path / "y.chrome.json").read_text())["traceEvents"]:
        stack = open_.setdefault(event["tid"], [])
        if event["ph"] == "B":
            stack.append((event["tid"], event["name"], ns(event, "ts")))
        elif event["ph"] == "E":
            found[(*stack.pop(), ns(event, "ts"))] += 1
    # A call that rounding let end behind its caller ends with it.
    assert {key[:3] for key in found} == {key[:3] for key in expected} and found.total() == expected.total()
    ends = sorted((*key[:3], key[3]) for key in found.elements())
    assert all(0 <= b[3] - a[3] <= 2 for a, b in zip(ends, sorted(expected.elements())))
    assert beside(tmp_path / "y.chrome.json") == [("i", "now", None), ("C", "level", 3)]


def test_asynchronous(tmp_path):
    """b and e belong together by category and id, whatever lies between; one that does not end lasts until the thread does."""
    def event(ph, ts, name="job", **more):
        return {"ph": ph, "pid": 1, "tid": 2, "ts": ts, "cat": "c", "name": name, **more}
    events = [event("X", 0, "main", dur=100), event("b", 10, id=1), event("b", 20, id=2), event("e", 30, id=1), event("e", 50, id=2),
              event("b", 60, id2={"local": "0x3"}), event("n", 70, "tick", id2={"local": "0x3"}), event("e", 99, id=4),
              event("C", 5, "mem", args={"used": 1.5, "free": 2})]
    (tmp_path / "x.json").write_text(json.dumps(events))
    assert fathom("convert", tmp_path / "x.json", "-o", tmp_path / "y.chrome.json").returncode == 0
    out = json.loads((tmp_path / "y.chrome.json").read_text())["traceEvents"]
    begins = {e["id2"]["local"]: e["ts"] for e in out if e["ph"] == "b"}
    assert sorted((ts, next(e["ts"] for e in out if e["ph"] == "e" and e["id2"]["local"] == key)) for key, ts in begins.items()) == [
        (10, 30), (20, 50), (60, 100)]
    assert [(e["name"], e["ts"]) for e in out if e["ph"] == "i"] == [("tick", 70)]
    assert sorted((e["name"], e["ts"], e["args"]["value"]) for e in out if e["ph"] == "C") == [("mem free", 5, 2), ("mem used", 5, 1.5)]
    assert "no calls: they are in the timeline" in fathom("report", tmp_path / "x.json").stdout.decode()


def test_damaged(tmp_path):
    (tmp_path / "x").write_text('{"traceEvents": [{"ph": "X", "ts": ;}]}')
    assert "it is no JSON: byte " in fails(5, "report", tmp_path / "x")
