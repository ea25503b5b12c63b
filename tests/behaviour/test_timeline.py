"""The timeline of a sampled run: what was seen when, for nothing. A program says when its phases were; the recording
must say the same, and of any stretch of time what it says of the whole."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest

import enough
import launch
import pythons
import recordings
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.sampled()
PYTHON = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
PHASES = launch.program("sampled_phases.py")
NO_TIMELINE = "has no timeline: it was recorded with --no-timeline, neither sampled nor traced, or by a version that kept none"


def record(python, output, seconds, *words):
    """Where the phases are in the recording: (name, begin, end) in seconds since its timeline began."""
    done = launch.run(*words, PHASES, str(seconds), python=python, output=output, collectors=("--sample",))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def timeline(path, *words):
    return recordings.report(path, "--timeline", *words)


def between(path, begin_ns, end_ns, *words):
    return recordings.report(path, "--from", f"{begin_ns / 1e9:.9f}s", "--to", f"{end_ns / 1e9:.9f}s", *words)


@pytest.fixture(scope="module")
def recorded(any_python, tmp_path_factory):
    """(file, phases since the timeline began) with enough samples in the middle of each phase."""
    output = tmp_path_factory.mktemp("timeline") / "o.fathom"

    def measure(seconds):
        output.unlink(missing_ok=True)
        said = record(any_python, output, seconds)
        start = timeline(output)["timeline"]["start_ns"]
        phases = [(name, begin - start, end - start) for name, begin, end in said]
        for name, begin, end in phases:
            enough.want(samples_of(middle(output, begin, end), name), 20, f"samples in the middle of {name}")
        return output, phases

    return enough.measured(measure, 0.4)


def middle(path, begin, end):
    quarter = (end - begin) // 4
    return between(path, begin + quarter, end - quarter)["functions"]


def samples_of(functions, name):
    return sum(row["total_samples"] for row in functions if row["name"] == name)


def numbers(functions):
    return {(row["qualname"], row["file"], row["line"]): (row["self_ns"], row["samples"]) for row in functions
            if row["self_ns"] or row["samples"]}


def test_phases_are_where_the_program_says(recorded):
    path, phases = recorded
    for name, begin, end in phases:
        others = {"load", "save"} - {name}
        functions = middle(path, begin, end)
        assert samples_of(functions, name) > 0
        assert all(samples_of(functions, other) == 0 for other in others), (name, functions)


def test_lanes_have_the_phases_in_their_order(recorded):
    path, phases = recorded
    lanes = {lane["thread"]: lane for lane in timeline(path)["lanes"]}
    assert set(lanes) >= {"MainThread", "waiter"}
    assert {lane["kind"] for lane in lanes.values()} == {"sampled"}
    named = [phase for phase in lanes["MainThread"]["phases"] if phase["name"] in ("load", "save")]
    joined = [named[0]]
    for phase in named[1:]:
        if phase["name"] != joined[-1]["name"]:
            joined.append(phase)
    assert [phase["name"] for phase in joined] == [name for name, _, _ in phases]
    assert {phase["state"] for phase in named} >= {"sleep"}
    _, begin, end = phases[1]
    save = [phase for phase in named if phase["name"] == "save"]
    assert abs(save[0]["begin_ns"] - begin) < (end - begin) / 4
    assert abs(save[-1]["end_ns"] - end) < (end - begin) / 4


def test_stretches_add_up_to_the_whole(recorded):
    path, _ = recorded
    length = timeline(path)["timeline"]["length_ns"]
    cuts = [0, length // 7, length // 3, length // 3 + 1, length * 5 // 8, length]
    sums: dict = {}
    for begin, end in zip(cuts, cuts[1:]):
        for key, (ns, samples) in numbers(between(path, begin, end)["functions"]).items():
            before = sums.get(key, (0, 0))
            sums[key] = (before[0] + ns, before[1] + samples)
    sums = {key: value for key, value in sums.items() if any(value)}
    assert sums == numbers(recordings.report(path)["functions"])


def test_any_report_of_a_stretch(recorded):
    path, phases = recorded
    _, begin, end = phases[1]
    quarter = (end - begin) / 4
    words = ("--from", f"{(begin + quarter) / 1e6}ms", "--to", f"{(end - quarter) / 1e9}s")
    tree = recordings.report(path, "--tree", "--min", "0", *words)["tree"]
    assert {row["name"] for row in tree} & {"load", "save"} == {"save"}
    threads = recordings.report(path, "--threads", *words)["threads"]
    assert {row["name"] for row in threads} >= {"MainThread", "waiter"}
    text = launch.fathom("report", path, "--from", "25%", "--to", "50%").stdout
    assert "\nonly " in text and text.count(" s of ") == 1


def test_a_picture(recorded):
    path, _ = recorded
    for width in (80, 160):
        text = launch.fathom("report", path, "--timeline", "--width", str(width)).stdout
        [row] = [line for line in text.splitlines() if line.startswith("MainThread  ")]
        assert len(row) == width
        letters = {line.split()[-2]: line[0] for line in text.splitlines() if "sampled_phases.py:" in line
                   and line[0].isupper()}
        assert {"load", "save"} <= set(letters), text
        load, save = letters["load"].lower(), letters["save"].lower()
        order = "".join(letter for letter in row.split(maxsplit=1)[1].lower() if letter in load + save)
        squeezed = "".join(letter for at, letter in enumerate(order) if at == 0 or order[at - 1] != letter)
        assert squeezed == load + save + load
    plain = launch.fathom("report", path, "--timeline", "--color", "never").stdout
    colored = launch.fathom("report", path, "--timeline", "--color", "always").stdout
    assert "\033" not in plain and "\033[" in colored


def test_it_goes_through_converting_redacting_and_merging(recorded, tmp_path):
    path, _ = recorded
    copy, merged = tmp_path / "copy.fathom", tmp_path / "merged.fathom"
    assert launch.fathom("convert", "--redact", path, "-o", copy).returncode == 0
    assert timeline(copy)["lanes"] == timeline(path)["lanes"]
    assert launch.fathom("merge", "--redact", path, copy, "-o", merged).returncode == 0
    assert len(timeline(merged)["lanes"]) == 2 * len(timeline(path)["lanes"])


def test_it_can_be_left_out(tmp_path):
    output = tmp_path / "o.fathom"
    record(PYTHON, output, 0.1, "--no-timeline")
    for words in (("--timeline",), ("--from", "10ms"), ("--to", "50%", "--tree")):
        done = launch.fathom("report", *words, output)
        assert (done.returncode, done.stdout) == (12, "")
        assert done.stderr == f"fathom report: {output} {NO_TIMELINE}\n"


def test_single_calls_need_a_trace(recorded):
    path, _ = recorded
    done = launch.fathom("report", "--slowest", "load", path)
    assert done.stderr == (f"fathom report: {path} was sampled, so single calls are not known: "
                           "`fathom run --trace` records each\n")


@pytest.mark.parametrize("words, sentence", [
    (("--from", "1x"), '--from takes a time of the run (1.5s, 20ms, 50%), not "1x"'),
    (("--to", "101%"), '--to takes a time of the run (1.5s, 20ms, 50%), not "101%"'),
    (("--from", "50%", "--to", "20%"), None),
    (("--from", "1h"), None),
    (("--from", "0s", "--lines"), "lines, waits, expressions and regions are recorded without their times, so --from and "
                                  "--to do not go with them"),
    (("--from", "0s", "--memory"), "--from and --to are of time; of memory there is --at 1s..2s"),
])
def test_what_makes_no_sense_is_said_in_a_sentence(recorded, words, sentence):
    path, _ = recorded
    done = launch.fathom("report", *words, path)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("fathom report: ")
    if sentence:
        assert done.stderr == f"fathom report: {sentence}. Try `fathom report --help`.\n"


def test_a_killed_launcher_leaves_its_timeline(own_run_folders, tmp_path):  # noqa: F811
    output, merged = tmp_path / "o.fathom", tmp_path / "m.fathom"
    process = launch.start(launch.FATHOM, "run", "--sample", "-q", "--python", PYTHON, "-o", output, PHASES, "100000",
                           start_new_session=True)
    try:
        end = time.monotonic() + launch.TIMEOUT
        while not (launch.run_folders() and os.path.exists(launch.run_folders()[0] + "/samples.fathom")):
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert launch.fathom("merge", output, "-o", merged).returncode == 0
    whole = timeline(merged)
    assert "MainThread" in {lane["thread"] for lane in whole["lanes"]}
    assert samples_of(between(merged, 0, whole["timeline"]["length_ns"])["functions"], "load") > 0
