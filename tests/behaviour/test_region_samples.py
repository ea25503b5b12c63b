"""Regions are nodes of sampled trees: each sample is below the regions that its thread is in at that instant, and these below the call
that entered them. What is right is told by the program's own clock (tests/programs/region_shares.py)."""

import json
import os

import pytest

import enough
import launch
import recordings
import sampled
from conftest import PACKAGE
from launch import own_run_folders  # noqa: F401 (a fixture)

PROGRAM = launch.program("region_shares.py")
OWN = {"nested", "generators", "request", "other", "managers", "overlap", "left_open", "returned", "many", "of"}


def record(python, tmp_path, seconds, *what, collectors=()):
    output = tmp_path / f"out{len(list(tmp_path.iterdir()))}.fathom"
    done = launch.run(*collectors, PROGRAM, str(seconds), *what, python=python, output=output, collectors=(),
                      env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    recording = sampled.Recording(output)
    recording.clock = json.loads(done.stdout)
    return recording


def record_script(script, python, seconds):
    output = script.with_name(f"{script.stem}{seconds:g}.fathom")
    done = launch.run(script, str(seconds), python=python, output=output, collectors=(), env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    recording = sampled.Recording(output)
    recording.said = done.stdout
    return recording


def paths(recording, column):
    """{"nested/step/assemble/turn": sum} from the first function of the program on."""
    rows, found = {row["node"]: row for row in recording.tree}, {}
    for row in recording.tree:
        names, at = [], row
        while at["parent"] is not None:
            names.append(at["name"])
            at = rows[at["parent"]]
        names.reverse()
        first = next((i for i, name in enumerate(names) if name in OWN), None)
        if first is not None and row[column]:
            name = "/".join(names[first:])
            found[name] = found.get(name, 0) + row[column]
    return found


def looked(recording):
    """The part of its looks, of those asked for, that the sampler made at least: time between late ones is nobody's."""
    return recording.sampling["rounds"] / (recording.sampling["asked_hz"] * sum(recording.clock.values()))


def measured(python, tmp_path, *what, least=60, seen=0, **options):
    def measure(seconds):
        recording = record(python, tmp_path, seconds, *what, **options)
        if seen:
            enough.want(looked(recording), seen, "of the looks asked for")
        # wherever they are: a sample in the wrong place is no reason to measure again
        turns = sum(row["samples"] for row in recording.tree if row["name"] == "turn")
        enough.want(turns, least * len(recording.clock), "samples")
        return recording

    return enough.measured(measure, 1)


def check_shares(recording):
    """Of each path's time among all of them, by samples and by the program's clock: within five standard deviations, and what
    a look may come late on a busy machine."""
    seen = {path: n for path, n in paths(recording, "samples").items() if path.endswith("/turn")}
    assert set(recording.clock) == set(seen)
    n, seconds = sum(seen.values()), sum(recording.clock.values())
    for path, took in recording.clock.items():
        share = took / seconds
        allowed = 5 * (share * (1 - share) / n) ** 0.5 + 0.03
        assert abs(seen[path] / n - share) < allowed, (path, seen, recording.clock)


@pytest.mark.parametrize("what", ["nested", "generators", "tasks", "managers", "overlap", "many"])
def test_samples_are_below_the_regions_around_them(python, tmp_path, what):
    check_shares(measured(python, tmp_path, what))


def test_each_thread_is_in_its_own(python, tmp_path):
    recording = measured(python, tmp_path, "threads")
    check_shares(recording)
    for name in ("first", "second"):
        below = [stack for stack in recording.stacks(recording.thread(name)["thread"]) if "turn" in stack]
        assert below and all(stack[-3:] == ("of", name, "turn") for stack in below)


def test_a_region_is_in_the_tree_until_its_call_ends(python, tmp_path):
    check_shares(measured(python, tmp_path, "returned"))


def test_the_table_of_regions_says_the_same(python, tmp_path):
    recording = measured(python, tmp_path, "nested", seen=0.9)
    regions = {row["name"]: row for row in recordings.report(recording.path, "--regions")["regions"]}
    [step] = [row for row in recording.tree if row["name"] == "step"]
    assert step["self_ns"] == 0 or step["self_ns"] < step["total_ns"] / 20
    assert abs(step["total_ns"] - regions["step"]["total_ns"]) < 0.15 * regions["step"]["total_ns"]


def test_what_a_function_does_itself_is_of_the_region_and_of_its_line(python, tmp_path):
    """The node is the region's, the line is the function's."""
    script = tmp_path / "own.py"
    script.write_text("import fathom, sys, time\n"
                      "def main():\n"
                      "    with fathom.region('alone'):\n"
                      "        end, used = time.time() + float(sys.argv[1]), time.process_time() + float(sys.argv[1]) / 4\n"
                      "        while time.time() < end or time.process_time() < used: pass\n"
                      "main()\n")

    def measure(seconds):
        recording = record_script(script, python, seconds)
        enough.want(sum(n for stack, n in recording.stacks().items() if "main" in stack), 60, "samples")
        return recording

    recording = enough.measured(measure, 0.3)
    [alone] = [row for row in recording.tree if row["name"] == "alone"]
    [line] = [row for row in recording.lines() if row["file"] == str(script) and row["line"] == 5]
    assert line["function"]["name"] == "main"
    assert 0.9 * alone["samples"] < line["samples"] <= alone["samples"]  # all but what line 4 has


@pytest.mark.parametrize("option", ["--calls", "--trace"])
def test_samples_find_the_exact_nodes(python, tmp_path, option):
    recording = measured(python, tmp_path, "nested", collectors=("--sample", option), least=20)
    of = {}
    for row in recording.tree:
        if row["name"] == "turn":
            of[row["node"]] = row
    assert len(of) == len(recording.clock)  # no second tree for samples
    assert all(row["calls"] and row["samples"] for row in of.values())


def test_forked_children_have_their_own(python, tmp_path):
    script = tmp_path / "forks.py"
    script.write_text("import fathom, os, sys, time\n"
                      "def turn():\n"
                      "    end, used = time.time() + float(sys.argv[1]), time.process_time() + float(sys.argv[1]) / 4\n"
                      "    while time.time() < end or time.process_time() < used: pass\n"
                      "def parent():\n"
                      "    with fathom.region('parent'):\n"
                      "        pid = os.fork()\n"
                      "        if not pid:\n"
                      "            child()\n"
                      "            os._exit(0)\n"
                      "        turn()\n"
                      "        os.waitpid(pid, 0)\n"
                      "def child():\n"
                      "    turn()\n"
                      "    with fathom.region('child'):\n"
                      "        turn()\n"
                      "parent()\n")

    def measure(seconds):
        seen = record_script(script, python, seconds).stacks()
        enough.want(sum(n for stack, n in seen.items() if "turn" in stack), 200, "samples")
        return {stack for stack in seen if "turn" in stack}

    seen = enough.measured(measure, 0.3)
    assert seen == {("<module>", "parent", "parent", "turn"), ("<module>", "parent", "child", "turn"),  # it begins with none
                    ("<module>", "parent", "child", "child", "turn")}


def test_a_process_is_as_old_as_its_samples(python, tmp_path):
    """Its regions are known from the import of fathom on, and it was there before."""
    script = tmp_path / "late.py"
    script.write_text("import sys, time\n"
                      "begin = time.monotonic_ns()\n"
                      "time.sleep(float(sys.argv[1]))\n"
                      "import fathom\n"
                      "with fathom.region('late'):\n"
                      "    print(time.monotonic_ns() - begin)\n")

    def measure(seconds):
        recording = record_script(script, python, seconds)
        enough.want(recording.sampling["rounds"], seconds * 500, "looks")
        return recording

    recording = enough.measured(measure, 0.4)
    [process] = recording.processes
    assert process["wall_ns"] >= 0.9 * int(recording.said)
    assert [row["name"] for row in recordings.report(recording.path, "--regions")["regions"]] == ["late"]
