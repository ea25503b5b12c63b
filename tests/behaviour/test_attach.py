"""`fathom attach`: what it sees of programs whose every thread stands in a known place, how time
adds up, and what it says when there is nothing to see.

One program (tests/programs/sampled_places.py) has a thread for each thing to be seen; it is sampled
once for each Python, and the tests look at that recording.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import enough
import launch
import pythons
import sampled
from launch import own_run_folders  # noqa: F401 (a fixture)

PLACES = launch.program("sampled_places.py")
INTERPRETERS = pythons.sampled()
PYTHON = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
CROWD, DEPTH = 200, 5000


class Seen:
    pass


@pytest.fixture(scope="module")
def seen(any_python, tmp_path_factory):
    """The program and its recording."""
    result = Seen()
    folder = tmp_path_factory.mktemp("places")
    with sampled.Program(any_python, PLACES) as program:
        result.says = program.says
        result.version = tuple(program.says["version"])
        result.recording = sampled.attach(program.at_rest().pid, folder / "places.fathom",
                                          "--rate", "100", "--duration", "1.5")
    return result


# ---------------------------------------------------------------- threads and states

def test_every_thread_is_there_by_its_name(seen):
    names = [row["name"] for row in seen.recording.threads]
    assert set(seen.says["lines"]) - {"crowd"} | set(seen.says["names"]) <= set(names)
    assert sum(name.startswith("crowd ") for name in names) == CROWD
    assert names.count("MainThread") == 1
    tids = {row["name"]: row["thread"] for row in seen.recording.threads}
    assert tids["MainThread"] == seen.says["pid"]


def test_nothing_was_lost(seen):
    """One look stands for ten slots at most: if a busy machine let none be made for longer, that time of all threads is lost."""
    counts, [process] = seen.recording.sampling, seen.recording.processes
    missed = counts["asked_hz"] * process["wall_ns"] / 1e9 - counts["rounds"]
    assert counts["lost"] <= (missed * len(seen.recording.threads) if missed > 10 else 0)
    assert counts["samples"] > 0 and counts["partial"] < counts["samples"] / 100


def test_state_of_waiting_threads(seen):
    for name, state in [("sleeps", "sleep"), ("locks", "lock"), ("receives", "network"),
                        ("pipes", "other"), ("MainThread", "other"), ("crowd 0", "lock"),
                        ("deep", "lock")]:
        assert set(sampled.states(seen.recording.thread(name))) == {state}, name


def test_state_of_running_threads(seen):
    """Each may wait for the GIL, or not, as the machine will have it; none does anything else."""
    states = {name: set(sampled.states(seen.recording.thread(name)))
              for name in ("runs_python", "runs_c", "runs_without_the_gil")}
    assert "python" in states["runs_python"] and states["runs_python"] <= {"python", "gil", "c"}
    assert "c" in states["runs_c"] and states["runs_c"] <= {"python", "gil", "c"}
    own = sampled.states(seen.recording.thread("runs_c"))
    assert own["c"] > 10 * own.get("python", 0), "a sum of millions takes longer than its call"
    assert "c" in states["runs_without_the_gil"]
    assert states["runs_without_the_gil"] <= {"python", "gil", "c"}
    own = sampled.states(seen.recording.thread("runs_python"))
    assert own["python"] > own.get("c", 0)


def test_what_threads_wait_for(seen):
    details = {(row["function"]["name"], row["state"]): row["detail"]
               for row in seen.recording.waits()}
    assert details["receives", "network"] == seen.says["address"]
    assert details["pipes", "other"] == seen.says["pipe"]
    assert details["locks", "lock"].startswith("futex 0x")


def test_who_held_the_gil(seen):
    """The threads that run fight for it; whoever waits is told who held it, and in which function."""
    rows = [row for row in seen.recording.waits() if row["state"] == "gil"]
    runners = {"runs_python", "runs_c", "runs_without_the_gil"}
    waiting = {row["function"]["name"] for row in rows}
    assert waiting and waiting <= runners
    for row in rows:
        held, _, where = row["detail"].partition(" in ")
        holder = held[len("held by "):]
        assert held.startswith("held by ") and holder in runners
        assert holder != row["function"]["name"]
        assert where.startswith(f"{holder} (") and PLACES in where


# ---------------------------------------------------------------- where

def test_lines(seen):
    """Each waits in the line that it noted just before."""
    seen_lines = {}
    for row in seen.recording.lines():
        if row["samples"] and row["file"] == PLACES:
            seen_lines.setdefault(row["line"], row["function"]["name"])
    for name, line in seen.says["lines"].items():
        if name.startswith(("runs_", "name ", "wide")):
            continue
        if name == "expression":
            line += 1  # begins in the line that was noted, waits in the next
        assert line in seen_lines, (name, line)


def test_columns(seen):
    if seen.version < (3, 11):
        pytest.skip("3.11 was the first to record columns")
    [spot] = [row for row in seen.recording.spots() if row["function"]["name"] == "expression"]
    source = open(PLACES, encoding="utf-8").read().splitlines()[spot["at_line"] - 1]
    assert spot["at_line"] == spot["end_line"] == seen.says["lines"]["expression"] + 1
    assert source[spot["column"] - 1:spot["end_column"] - 1] == "gate.acquire()"
    assert spot["source"] == source


STACKS = [
    ("locks", ["locks"]),
    ("recursion", ["recursion"] * 31),
    ("generators", ["generators", "outer_generator", "inner_generator"]),
    ("generator_expressions", ["generator_expressions", "<genexpr>", "<genexpr>", "wait_in"]),
    ("decorated", ["wrapper", "decorated"]),
    ("init", ["init", "__init__", "__init__"]),
    ("sort_key", ["sort_key", "key"]),
    ("maps", ["maps", "each"]),
    ("deep", ["deep"] * (DEPTH + 1)),
    ("wide", ["wide"] + ["wide_level"] * 61),
    ("MainThread", ["<module>", "main"]),
]


def test_stacks(seen):
    for name, stack in STACKS:
        assert list(seen.recording.stack_of(name)) == stack


def test_stack_of_comprehensions(seen):
    """Since 3.12 they are part of their function."""
    inside = [] if seen.version >= (3, 12) else ["<listcomp>"] * 2
    assert list(seen.recording.stack_of("comprehensions")) == ["comprehensions", *inside, "wait_in"]


ENDINGS = [
    ("coroutines", ("_run", "awaiting", "innermost")),
    ("async_generators", ("_run", "over_agen", "agen")),
    ("imports", ("_find_and_load", "_find_and_load_unlocked", "_load_unlocked", "exec_module")),
]


def test_ends_of_stacks(seen):
    for name, ending in ENDINGS:
        stack = seen.recording.stack_of(name)
        assert stack[0] == name and stack[-len(ending):] == ending


def test_names_of_every_kind(seen):
    rows = {(row["file"], row["name"]) for row in seen.recording.functions}
    for tag, (filename, name) in seen.says["names"].items():
        # Half a surrogate pair is no text for most readers of JSON: it is there as one can see it.
        shown = tuple(text.encode("utf-8", "backslashreplace").decode() for text in (filename, name))
        assert shown in rows, tag
        assert seen.recording.stack_of(tag) == (name,)


def test_other_interpreters_are_seen(seen):
    if seen.version < (3, 12):
        pytest.skip("the program makes one since 3.12 only")
    [tid] = {row["thread"] for row in seen.recording.threads if row["name"] == "another"}
    stacks = {sampled.without_bootstrap(stack) for stack in seen.recording.stacks(tid)}
    assert ("<module>", "waits_there") in stacks or \
        ("in_another_interpreter", "<module>", "waits_there") in stacks


def test_time_adds_up(seen):
    """Every thread was there all the time, so each has the whole of it, in whatever states."""
    [process] = seen.recording.processes
    whole = sum(sampled.states(seen.recording.thread("MainThread")).values())
    # The last look may be a while ago where the machine is busy with other things.
    assert process["wall_ns"] / 2 < whole <= 1.05 * process["wall_ns"]
    for row in seen.recording.threads:
        total = sum(sampled.states(row).values())
        assert 0.9 * whole <= total <= 1.1 * whole, row
    assert process["process"] == seen.says["pid"] and process["parent"] == os.getpid()
    assert process["python"].startswith("%d.%d" % seen.version)
    assert process["exit_status"] is None, "it was still running"


# ---------------------------------------------------------------- which samples, how many

WORK = """
import json, os, threading, time
def spins():
    while True:
        for _ in NUMBERS: pass
def sleeps():
    time.sleep(1000)
NUMBERS = list(range(10000))
for target in (spins, sleeps):
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
print(json.dumps({}), flush=True)
os.read(0, 1)
os._exit(0)
"""


@pytest.fixture(scope="module")
def worker(any_python):
    with sampled.Program(any_python, "-c", WORK) as program:
        yield program.at_rest()


@pytest.mark.parametrize("mode", ["--cpu", "--gil"])
def test_modes_count_only_what_they_should(worker, mode, tmp_path):
    recording = sampled.attach(worker.pid, tmp_path / "o.fathom", mode, "--duration", "0.3")
    assert {row["name"] for row in recording.threads} == {"spins"}
    assert set(sampled.states(recording.thread("spins"))) <= {"python", "c"}
    assert {sampled.without_bootstrap(stack) for stack in recording.stacks()} == {("spins",)}


@pytest.mark.parametrize("mode", ["--cpu", "--gil"])
def test_modes_count_nothing_where_nothing_runs(any_python, mode, tmp_path):
    code = "import json, time; print(json.dumps({}), flush=True); time.sleep(1000)"
    with sampled.Program(any_python, "-c", code) as program:
        while "S" != open(f"/proc/{program.pid}/stat").read().rsplit(")", 1)[1].split()[0]:
            time.sleep(0.01)
        recording = sampled.attach(program.pid, tmp_path / "o.fathom", mode, "--rounds", "30")
    assert recording.sampling["samples"] == 0 and recording.sampling["rounds"] >= 30


def test_rounds(worker, tmp_path):
    recording = sampled.attach(worker.pid, tmp_path / "o.fathom", "--rounds", "40")
    assert recording.sampling["rounds"] >= 40
    assert recording.sampling["samples"] == 3 * recording.sampling["rounds"]


def test_rates(tmp_path):
    """As fast as it goes is faster than 50 a second; a limit of 1 % of a processor is kept, but for what it takes to find
    the interpreter."""
    def measure(seconds):
        rounds, cpu = {}, {}
        for words in (["--rate", "max"], ["--rate", "50"], ["--rate", "max", "--max-cpu", "1"],
                      ["--max-cpu", "1", "--rate", "max"]):
            recording = sampled.attach(program.pid, tmp_path / "o.fathom", *words, "--duration", seconds, "--force")
            rounds[tuple(words)] = recording.sampling["rounds"]
            cpu[tuple(words)] = recording.sampling["sampler_cpu_ns"] / 1e9
        assert rounds["--rate", "50"] <= 50 * seconds + 1
        limit = 0.02 * seconds + 0.1
        enough.want(rounds["--rate", "max"], 1000 * seconds, "rounds as fast as it goes")
        enough.want(cpu["--rate", "max"], 2 * limit, "seconds of a processor as fast as it goes")
        return limit, rounds.values(), cpu.values()

    with sampled.Program(PYTHON, "-c", WORK) as program:
        limit, (fastest, fifty, *_), (_, _, limited, limited_before) = enough.measured(measure, 2)
    assert fastest > fifty
    assert limited < limit and limited_before < limit


def test_holder_of_the_gil_at_a_low_rate(tmp_path):
    """Also where the list of threads is renewed before every look."""
    code = WORK.replace("(spins, sleeps)", "(spins, spins, spins)")
    with sampled.Program(PYTHON, "-c", code) as program:
        recording = sampled.attach(program.pid, tmp_path / "o.fathom", "--rate", "9",
                                   "--rounds", "9")
    assert any(row["detail"].startswith("held by spins in spins (") for row in recording.waits())


def test_tasks(any_python, tmp_path):
    code = ("import asyncio, json\n"
            "async def inner(): await asyncio.sleep(1000)\n"
            "async def outer(): await inner()\n"
            "async def main():\n"
            "    tasks = [asyncio.ensure_future(outer()) for _ in range(3)]\n"
            "    await asyncio.sleep(0)\n"
            "    print(json.dumps({}), flush=True)\n"
            "    await asyncio.sleep(1000)\n"
            "asyncio.run(main())\n")
    with sampled.Program(any_python, "-c", code) as program:
        recording = sampled.attach(program.pid, tmp_path / "o.fathom", "--tasks", "--rounds", "20")
    assert any(stack[-3:] == ("outer", "inner", "sleep") for stack in recording.stacks())


# ---------------------------------------------------------------- the recording

def attached(program, *words):
    """`fathom attach` at the program, once it samples."""
    read_end, write_end = os.pipe()
    fathom = launch.start(launch.FATHOM, "attach", program.pid, *words, "--ready-fd", write_end,
                          pass_fds=[write_end])
    os.close(write_end)
    assert os.read(read_end, 100) == b"attached\n"
    os.close(read_end)
    return fathom


def test_recording_while_it_goes_on(tmp_path):
    """SIGUSR1 writes it, SIGTERM ends it."""
    output = tmp_path / "o.fathom"
    with sampled.Program(PYTHON, "-c", WORK) as program:
        fathom = attached(program, "-o", output)
        fathom.send_signal(signal.SIGUSR1)
        assert fathom.stderr.readline() == f"fathom attach: written to {output}\n"
        first = sampled.Recording(output)
        assert fathom.poll() is None
        fathom.terminate()
        _, rest = fathom.communicate(timeout=launch.TIMEOUT)
        assert fathom.returncode == 0
        assert rest.endswith(f"Recorded to {output}; next: fathom report {output}\n")
        assert sampled.Recording(output).sampling["samples"] >= first.sampling["samples"]
        assert sampled.is_there(program.pid)


def kill(fathom):
    fathom.kill()
    fathom.wait(timeout=launch.TIMEOUT)
    fathom.stdout.close(), fathom.stderr.close()


def test_killed_after_it_saved(tmp_path):
    """What was saved says that there was more; what ended by itself does not."""
    output = tmp_path / "o.fathom"
    with sampled.Program(PYTHON, "-c", WORK) as program:
        fathom = attached(program, "-o", output)
        fathom.send_signal(signal.SIGUSR1)
        assert fathom.stderr.readline() == f"fathom attach: written to {output}\n"
        kill(fathom)
        [note] = sampled.Recording(output).notes
        assert note["kind"] == "cut-off" and "still went on" in note["text"]
        whole = sampled.attach(program.pid, tmp_path / "whole.fathom", "--rounds", "3")
        assert whole.notes == []


def test_killed_before_it_saved(tmp_path):
    """The file that keeps the name says so, whoever opens it."""
    with sampled.Program(PYTHON, "-c", WORK) as program:
        kill(attached(program, "-o", tmp_path / "o.fathom"))
    for words in (["report"], ["convert", "-o", tmp_path / "o.prof"], ["view", "-o", tmp_path / "o.html"]):
        done = launch.fathom(*words, tmp_path / "o.fathom")
        assert done.returncode == 12 and done.stdout == ""
        assert "o.fathom holds nothing: fathom attach was cut off" in done.stderr
    assert os.listdir(tmp_path) == ["o.fathom"]


def test_force_keeps_the_old_one_until_there_is_a_new_one(tmp_path):
    output = tmp_path / "o.fathom"
    output.write_text("old")
    with sampled.Program(PYTHON, "-c", WORK) as program:
        fathom = attached(program, "--force", "-o", output)
        kill(fathom)
        assert output.read_text() == "old"
        fathom = attached(program, "--force", "-o", output)
        fathom.send_signal(signal.SIGUSR1)
        assert fathom.stderr.readline() == f"fathom attach: written to {output}\n"
        kill(fathom)
        assert sampled.Recording(output).sampling["samples"] >= 0


def test_signal_before_anything_else(tmp_path):
    """SIGUSR1 means "write", from the first moment on; it does not end what was just started."""
    with sampled.Program(PYTHON, "-c", "print(0, flush=True); input()") as program:
        done = launch.fathom("attach", str(program.pid), "-o", tmp_path / "o.fathom", "--duration", "0.3",
                             env=launch.signalled_early("SIGUSR1", tmp_path))
    assert done.returncode == 0, done
    assert f"written to {tmp_path / 'o.fathom'}\n" in done.stderr


def test_default_name_and_template(tmp_path):
    with sampled.Program(PYTHON, "-c", WORK) as program:
        for words in ([], [], ["-o", "x-%p.fathom"]):
            done = launch.fathom("attach", "-q", "--rounds", "3", *words, program.pid, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
        pid = program.pid
    assert sorted(os.listdir(tmp_path)) == [f"attach-{pid}-2.fathom", f"attach-{pid}.fathom",
                                            f"x-{pid}.fathom"]


def test_process_that_ends_while_it_is_watched(any_python, tmp_path):
    """What was gathered is kept, and its end is no failure."""
    with sampled.Program(any_python, "-c", WORK) as program:
        fathom = attached(program, "-q", "-o", tmp_path / "o.fathom")
        sampled.wait_until_seen(fathom, signal.SIGUSR1, tmp_path / "o.fathom", "spins", "sleeps")
        program.end()
        out, err = fathom.communicate(timeout=launch.TIMEOUT)
    assert (fathom.returncode, out, err) == (0, "", "")
    sampled.Recording(tmp_path / "o.fathom").named("spins", "sleeps")


def test_process_that_becomes_something_else(tmp_path):
    """It executes a program that is no Python: what was gathered before is kept."""
    code = ("import json, os, time\n"
            "def before():\n"
            "    print(json.dumps({}), flush=True)\n"
            "    os.read(0, 1)\n"
            "before()\n"
            "os.execvp('sleep', ['sleep', '0.3'])\n")
    with sampled.Program(PYTHON, "-c", code) as program:
        fathom = attached(program, "-q", "-o", tmp_path / "o.fathom")
        sampled.wait_until_seen(fathom, signal.SIGUSR1, tmp_path / "o.fathom", "before")
        program.process.stdin.close()
        program.process.stdin = None
        assert program.process.wait(timeout=launch.TIMEOUT) == 0
        out, err = fathom.communicate(timeout=launch.TIMEOUT)
    assert (fathom.returncode, out, err) == (0, "", "")
    sampled.Recording(tmp_path / "o.fathom").named("before")


# ---------------------------------------------------------------- what cannot be attached to

def refused(folder, *words, status, **options):
    """One sentence, that status, nothing written."""
    before = sorted(os.listdir(folder))
    done = launch.fathom("attach", *words, cwd=folder, **options)
    assert sorted(os.listdir(folder)) == before
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("fathom attach: ")
    assert done.returncode == status, done.stderr
    return done.stderr


@pytest.fixture
def sleeper():
    with sampled.Program(PYTHON, "-c", "import json, time; print(json.dumps({}), flush=True);"
                         "time.sleep(1000)") as program:
        yield program.pid


def free_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_no_such_process(tmp_path):
    pid = free_pid()
    assert str(pid) in refused(tmp_path, pid, status=3)


def test_not_a_python(tmp_path):
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            sentence = refused(tmp_path, process.pid, status=13)
        finally:
            process.kill()
    assert "sleep" in sentence and "no Python" in sentence


def test_zombie(tmp_path):
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert "ended" in refused(tmp_path, process.pid, status=3)


def test_python_too_old(tmp_path):
    root = os.path.expanduser(os.environ.get("PYENV_ROOT") or "~/.pyenv")
    names = sorted(name for name in os.listdir(f"{root}/versions") if name.startswith("3.8.")) \
        if os.path.isdir(f"{root}/versions") else []
    if not names:
        pytest.skip("no CPython 3.8 here")
    with sampled.Program(f"{root}/versions/{names[0]}/bin/python3.8", "-c",
                         "import json, time; print(json.dumps({}), flush=True);"
                         "time.sleep(1000)") as program:
        assert "3.8" in refused(tmp_path, program.pid, status=12)


def test_id_of_a_thread(tmp_path):
    """It means its process."""
    with sampled.Program(PYTHON, "-c", WORK) as program:
        [tid, *_] = [name for name in os.listdir(f"/proc/{program.pid}/task")
                     if name != str(program.pid)]
        [process] = sampled.attach(int(tid), tmp_path / "o.fathom", "--rounds", "3").processes
        assert process["process"] == program.pid


def test_process_of_another_user(sleeper, tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to become somebody else")
    tmp_path.chmod(0o777)
    done = launch.plain("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                        "--inh-caps=-all", "sh", "-c", 'exec "$0" attach "$1"', launch.FATHOM,
                        sleeper, cwd="/")
    if done.returncode == 126:
        pytest.skip("others cannot execute this build of fathom")
    assert (done.returncode, done.stdout) == (15, "") and done.stderr.count("\n") == 1
    assert str(sleeper) in done.stderr


def test_output_exists(sleeper, tmp_path):
    (tmp_path / "o.fathom").write_text("precious")
    assert "--force" in refused(tmp_path, "-o", "o.fathom", sleeper, status=7)
    assert (tmp_path / "o.fathom").read_text() == "precious"
    for force in ("--force", "-f"):
        (tmp_path / "o.fathom").write_text("old")
        sampled.attach(sleeper, tmp_path / "o.fathom", force, "--rounds", "3")


@pytest.mark.parametrize("name", ["no/such/o.fathom", "/proc/o.fathom"])
def test_output_that_cannot_be_written(sleeper, name, tmp_path):
    assert name in refused(tmp_path, "-o", name, sleeper, status=8)


@pytest.mark.parametrize("words, part", [
    ([], "which process"),
    (["--rate", "0", "1"], "--rate"),
    (["--rate", "-5", "1"], "--rate"),
    (["--rate", "fast", "1"], "--rate"),
    (["--rate", "nan", "1"], "--rate"),
    (["--rate", "2e6", "1"], "--rate"),
    (["--rate", "100x", "1"], "--rate"),
    (["--rate"], "--rate"),
    (["--max-cpu", "0", "1"], "--max-cpu"),
    (["--max-cpu", "101", "1"], "--max-cpu"),
    (["--duration", "-1", "1"], "--duration"),
    (["--duration", "soon", "1"], "--duration"),
    (["--rounds", "0", "1"], "--rounds"),
    (["--rounds", "1.5", "1"], "--rounds"),
    (["-o"], "-o needs a name"),
    (["-o", "", "1"], "-o needs a name"),
    (["--nosuch", "1"], "--nosuch"),
    (["abc"], "abc"),
    (["0"], "0"),
    (["99999999999"], "99999999999"),
    (["1", "2"], "one process"),
])
def test_wrong_usage(words, part, tmp_path):
    assert part in refused(tmp_path, *words, status=2)
