"""Threads that end with calls and lines open, without the GIL: counted to the last, harming nobody."""

import json

import launch
import pytest
import recordings
from launch import own_run_folders  # noqa: F401 (a fixture)

PROGRAM = launch.program("threads_end.py")
THREADS, ROUNDS = 20, 200


@pytest.mark.parametrize("collectors", [("--calls",), ("--calls", "--lines=mine"),
                                        ("--lines=mine",)], ids=" ".join)
def test_calls_and_lines(python, tmp_path, collectors):
    alone = launch.plain(python, PROGRAM)
    output = tmp_path / "o.fathom"
    under = launch.run(PROGRAM, python=python, output=output, collectors=collectors)
    assert (under.stdout, under.stderr, under.returncode) == (
        alone.stdout, alone.stderr, alone.returncode) == ("all have ended\n", "", 0)
    if "--calls" in collectors:
        assert recordings.one(output, "work")["calls"] == THREADS * (ROUNDS + 1) + 1
        assert recordings.one(output, "end_here")["calls"] == THREADS
    assert recordings.report(output)["notes"] == []
    if "--lines=mine" in collectors:
        lines = launch.fathom("report", output, "--lines", "--json")
        table = json.loads(lines.stdout)
        found = {line["source"].strip(): line["hits"]
                 for f in table["functions"] for line in f["lines"]}
        assert found["total += i"] == 10 * (THREADS * (ROUNDS + 1) + 1)

