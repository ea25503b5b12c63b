"""Firefox Profiler's JSON: whole tables, and the sums that the recording has.

The recording is the one that tests/unit/tool_sampled.c draws: 1,000 samples of 1 ms."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import firefox
from launch import FATHOM, own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fails, fathom, write

TOOL = Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_sampled"
OWN = {"price": 400, "fetch": 230, "work": 150, "main": 120, "walk": 100}
TOTAL = {"price": 400, "fetch": 230, "work": 150, "main": 850, "walk": 500, "<module>": 850}
STATES = {"running Python": 450, "running C": 100, "waiting for the GIL": 100, "waiting for a lock": 50,
          "waiting for the network": 200, "sleeping": 100}


def converted(folder: Path, *options, outside=()) -> dict:
    subprocess.run([TOOL, folder / "app.fathom", *outside], check=True, timeout=300)
    done = fathom("convert", folder / "app.fathom", "-o", folder / "app.firefox.json", *options)
    assert (done.returncode, done.stderr) == (0, b""), done
    profile = json.loads((folder / "app.firefox.json").read_text())
    firefox.check(profile)
    return profile


def test_sums_are_those_of_the_recording(tmp_path):
    profile = converted(tmp_path)
    own, total, states = firefox.sums(profile)
    assert (own, total, states) == (OWN, TOTAL, STATES)
    assert [(t["name"], t["pid"], t["tid"], t["isMainThread"]) for t in profile["threads"]] == [
        ("MainThread", "100", 100, True), ("worker", "100", 101, False)]
    assert [sum(t["samples"]["weight"]) for t in profile["threads"]] == [850, 150]
    assert {t["samples"]["weightType"] for t in profile["threads"]} == {"tracing-ms"}
    assert profile["meta"]["product"] == "python3 app.py" and profile["meta"]["interval"] == 1


def test_functions_have_their_files_and_first_lines(tmp_path):
    shared = converted(tmp_path)["shared"]
    text = shared["stringArray"]
    assert {(text[name], text[shared["sources"]["filename"][source]], line) for name, source, line in zip(
        shared["funcTable"]["name"], shared["funcTable"]["source"], shared["funcTable"]["lineNumber"])} == {
        ("<module>", "/srv/app.py", 1), ("main", "/srv/app.py", 15), ("fetch", "/srv/app.py", 6),
        ("walk", "/srv/app.py", 10), ("price", "/srv/app.py", 3), ("work", "/srv/lib.py", 1)}


def test_samples_without_a_frame_are_there(tmp_path):
    own, total, states = firefox.sums(converted(tmp_path, outside=["7"]))
    assert own == OWN | {"(no Python frame)": 7} and total == TOTAL | {"(no Python frame)": 7}
    assert states == STATES | {"running C": 107}


def test_another_metric(tmp_path):
    """Samples of the tree are samples here, of which no state is known."""
    profile = converted(tmp_path, "--metric", "samples")
    own, total, _ = firefox.sums(profile)
    assert (own, total) == (OWN, TOTAL)
    assert {t["samples"]["weightType"] for t in profile["threads"]} == {"samples"}


@pytest.mark.parametrize("name", ["x.firefox", "x.firefox.json"])
def test_a_table_has_no_stacks(name, tmp_path):
    write(tmp_path / "x.prof", {("a.py", 1, "f"): (1, 1, 0.5, 0.5, {})})
    assert "not the stacks" in fails(12, "convert", tmp_path / "x.prof", "-o", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_it_is_written_only(tmp_path):
    converted(tmp_path)
    assert "in no format" in fails(4, "report", tmp_path / "app.firefox.json")
