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


def test_damaged(tmp_path):
    (tmp_path / "x").write_text('{"traceEvents": [{"ph": "X", "ts": ;}]}')
    assert "it is no JSON: byte " in fails(5, "report", tmp_path / "x")
