"""`fathom run` with its default collector: the program does not notice, every Python below it is in
the recording, and the recording comes in whatever format was asked for."""

from __future__ import annotations

import gzip
import json
import marshal
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

import enough
import launch
import pythons
import recordings
import sampled
from launch import no_core_files, own_run_folders  # noqa: F401 (fixtures)

INTERPRETERS = pythons.sampled()
PYTHON = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
MANNERS = launch.program("manners.py")
ENDS = launch.program("ends.py")
CHILDREN = launch.program("sampled_children.py")
COMBINED = launch.program("sampled_combined.py")
TASKS = launch.program("sampled_tasks.py")
SAMPLE = ("--sample",)
TOO_SHORT = "fathom run: no Python was profiled in this run\n"
WAYS = "normally exit7 exit_text _exit3 exception interrupt abort segfault sigterm sigkill".split()


def run(*words, **options):
    return launch.run(*words, collectors=SAMPLE, **options)


def spin(name, seconds):
    """Turns for so long and, where the machine is busy, until a third of that was spent on a processor."""
    return (f"import time\ndef {name}():\n    end, used = time.monotonic() + {seconds}, time.process_time() + {seconds / 3}\n"
            f"    while time.monotonic() < end or time.process_time() < used: pass\n{name}()\n")


# ---------------------------------------------------------------- the program does not notice

def test_it_is_the_same_process(any_python, tmp_path):
    """Environment, descriptors, signals, modules, limits, threads: all as without Fathom."""
    alone = launch.plain(any_python, MANNERS, "a", "-b")
    under = run(MANNERS, "a", "-b", python=any_python, output=tmp_path / "o.fathom")
    assert (under.returncode, under.stderr.replace(TOO_SHORT, "")) == (0, alone.stderr)
    before, after = json.loads(alone.stdout), json.loads(under.stdout)
    assert {key: (before[key], after[key]) for key in before if before[key] != after[key]} == {}


def test_nobody_traces_it_and_nothing_is_loaded_into_it(any_python, tmp_path):
    code = ("import os\n"
            "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
            "print(status['TracerPid'].strip(), 'LD_PRELOAD' in os.environ,\n"
            "      [name for name in os.environ if name.startswith('FATHOM_')\n"
            "       and name not in ('FATHOM_TMPDIR', 'FATHOM_AGENTS')],\n"
            "      'fathom' in open('/proc/self/maps').read().replace(os.getcwd(), ''))\n")
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("FATHOM") or name in ("FATHOM_TMPDIR", "FATHOM_AGENTS")}
    done = run(any_python, "-c", code, output=tmp_path / "o.fathom", env=env, cwd="/")
    expected = "False" if "fathom" not in any_python else "True"
    assert (done.stdout, done.stderr.replace(TOO_SHORT, "")) == (f"0 False [] {expected}\n", "")


def test_ways_to_end(any_python, tmp_path):
    for way in WAYS:
        alone = launch.plain(any_python, ENDS, way)
        under = run(ENDS, way, python=any_python, output=tmp_path / f"{way}.fathom")
        if under.stderr.endswith(TOO_SHORT):  # ended before the first look at it
            under.stderr = under.stderr[:-len(TOO_SHORT)]
        assert (way, under.returncode, under.stdout, under.stderr) == (
            way, alone.returncode, alone.stdout, alone.stderr)
        assert (tmp_path / f"{way}.fathom").stat().st_size > 16
    assert launch.run_folders() == []


def start_and_wait_until_ready(way, tmp_path, *words):
    process = launch.start(launch.FATHOM, "run", "-q", "--python", PYTHON, "-o",
                           tmp_path / "o.fathom", *words, ENDS, way)
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return process, int(pid)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"])
def test_signal_to_the_launcher_reaches_the_program(name, tmp_path):
    process, _ = start_and_wait_until_ready("catches", tmp_path)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=launch.TIMEOUT)
    assert (out, err.replace(TOO_SHORT, ""), process.returncode) == (f"caught {name}\n", "", 20)
    assert (tmp_path / "o.fathom").stat().st_size > 16


def test_signal_before_the_program_runs(tmp_path):
    """It is the program's, and no folder is left behind."""
    env = launch.signalled_early("SIGUSR1", tmp_path)
    done = run("-c", "import time; time.sleep(60)", python=PYTHON, output=tmp_path / "o.fathom", env=env)
    assert done.returncode == -signal.SIGUSR1 and launch.run_folders() == []
    assert (tmp_path / "o.fathom").exists(), "the program was started, and ended by it"


def test_flush_signal(tmp_path):
    """The launcher keeps it and writes the recording so far; others still reach the program."""
    process, pid = start_and_wait_until_ready("catches", tmp_path, "--flush-signal", "USR1")
    output = tmp_path / "o.fathom"
    for _ in range(600):  # until it has been seen there
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        if launch.fathom("report", output).stdout.find("ready") >= 0:
            break
    first = sampled.Recording(output)
    first.named("ready")
    assert first.processes[0]["process"] == pid and first.processes[0]["exit_status"] is None
    [folder] = launch.run_folders()
    [note] = [note for note in first.notes if note["kind"] == "cut-off"]
    assert "the program still ran" in note["text"] and f"fathom merge {folder} -o" in note["text"]
    assert process.poll() is None
    process.send_signal(signal.SIGUSR2)
    out, err = process.communicate(timeout=launch.TIMEOUT)
    assert (out, err, process.returncode) == ("caught SIGUSR2\n", "", 20)
    last = sampled.Recording(output)
    assert last.sampling["samples"] >= first.sampling["samples"]
    assert last.processes[0]["exit_status"] == 20
    assert "cut-off" not in [note["kind"] for note in last.notes]


def test_flush_signal_in_another_format(tmp_path):
    process = launch.start(launch.FATHOM, "run", "-q", "--python", PYTHON, "-o",
                           tmp_path / "o.collapsed", "--flush-signal", "SIGUSR2", ENDS, "catches")
    assert process.stdout.readline().startswith("ready")
    for _ in range(600):  # until it has been seen there
        process.send_signal(signal.SIGUSR2)
        time.sleep(0.1)
        if (tmp_path / "o.collapsed").exists() and \
                "ready" in (tmp_path / "o.collapsed").read_text():
            break
    else:
        pytest.fail("never written")
    assert process.poll() is None
    process.terminate()
    assert process.communicate(timeout=launch.TIMEOUT) == ("caught SIGTERM\n", "")


def test_bad_flush_signal(tmp_path):
    for words in (["--flush-signal", "NOSUCH"], ["--flush-signal", "KILL"]):
        done = launch.fathom("run", *words, "-c", "pass", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_killed_launcher_leaves_the_program_running(tmp_path):
    process, pid = start_and_wait_until_ready("catches", tmp_path)
    try:
        process.kill()
        process.wait(timeout=launch.TIMEOUT)
        assert sampled.is_there(pid)
        os.kill(pid, signal.SIGUSR1)
        assert process.stdout.read() == "caught SIGUSR1\n"
        [folder] = launch.run_folders()
        done = launch.fathom("merge", folder, "-o", tmp_path / "merged.fathom")
        assert done.returncode == 4 and done.stderr.count("\n") == 1, "nothing was saved yet"
        assert folder in done.stderr
        done = launch.fathom("report", tmp_path / "o.fathom")
        assert "Traceback" not in done.stderr and done.returncode in (0, 12)
    finally:
        process.stdout.close()
        process.stderr.close()


def test_saved_while_it_runs(tmp_path):
    """Now and then the samples go to the folder of the run, where merge finds them."""
    process, pid = start_and_wait_until_ready("catches", tmp_path, "--flush-signal", "USR1")
    try:
        [folder] = launch.run_folders()
        for _ in range(600):
            process.send_signal(signal.SIGUSR1)  # saves as the clock would
            time.sleep(0.1)
            if "ready" in launch.fathom("report", tmp_path / "o.fathom").stdout:
                break
        process.kill()
        process.wait(timeout=launch.TIMEOUT)
        done = launch.fathom("merge", folder, "-o", tmp_path / "merged.fathom")
        assert done.returncode == 0, done.stderr
        sampled.Recording(tmp_path / "merged.fathom").named("ready")
    finally:
        os.kill(pid, signal.SIGKILL)
        process.stdout.close()
        process.stderr.close()


def test_saved_from_the_first_second_on(tmp_path):
    """Killed together with its launcher: what was sampled until it was last saved is in the folder."""
    process = launch.start(launch.FATHOM, "run", "-q", "--python", PYTHON, "-o", tmp_path / "o.fathom",
                           "-c", spin("busy", 60), start_new_session=True)
    try:
        end = time.monotonic() + launch.TIMEOUT
        while not (launch.run_folders() and os.path.exists(launch.run_folders()[0] + "/samples.fathom")):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    done = launch.fathom("merge", tmp_path / "o.fathom", "-o", tmp_path / "all.fathom")
    assert (done.returncode, done.stderr) == (0, "")
    recording = sampled.Recording(tmp_path / "all.fathom")
    recording.named("busy")
    assert recording.processes[0]["wall_ns"] < 30e9, "it was saved long before its end"
    assert any("sampled until" in note["text"] for note in recording.notes)


def test_nothing_was_saved_yet(tmp_path):
    process = launch.start(launch.FATHOM, "run", "-q", "--python", PYTHON, "-o", tmp_path / "o.fathom",
                           "-c", "print('runs', flush=True); import time; time.sleep(60)",
                           start_new_session=True)
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = launch.fathom("merge", tmp_path / "o.fathom", "-o", tmp_path / "all.fathom")
    if done.returncode == 0:
        pytest.skip("the machine was so slow that a second had passed")
    assert done.returncode == 4 and "no live stores and no samples" in done.stderr


# A program that makes it impossible to write the samples into the folder of its run, or its recording.
SPOIL = """import os, sys, time
def busy():
    end = time.monotonic() + 0.3
    while time.monotonic() < end or time.process_time() < 0.1: pass
for path in sys.argv[1:]:
    if os.path.exists(path): os.unlink(path)
    os.mkdir(path)
    open(path + "/full", "w").close()
busy()
"""


def spoiled(tmp_path, *which):
    """Run SPOIL for these of "samples" and "output"."""
    code = SPOIL.replace("sys.argv[1:]", repr(
        [str(tmp_path / "o.fathom")] if "output" in which else []) + (
        " + [os.environ['FATHOM_TMPDIR'] + '/' + os.listdir(os.environ['FATHOM_TMPDIR'])[0]"
        " + '/samples.fathom']" if "samples" in which else ""))
    return run("-c", code, python=PYTHON, output=tmp_path / "o.fathom")


def test_samples_that_cannot_be_saved_are_recorded(tmp_path):
    """The folder of the run takes no samples: the recording has them nevertheless."""
    done = spoiled(tmp_path, "samples")
    assert (done.returncode, done.stderr) == (0, "")
    sampled.Recording(tmp_path / "o.fathom").named("busy")


def test_recording_that_cannot_be_written_is_kept(tmp_path):
    done = spoiled(tmp_path, "output")
    assert done.returncode == 8 and "is kept in" in done.stderr
    [folder] = launch.run_folders()
    assert launch.fathom("merge", folder, "-o", tmp_path / "all.fathom").returncode == 0
    sampled.Recording(tmp_path / "all.fathom").named("busy")


def test_samples_that_are_lost_are_not_called_kept(tmp_path):
    done = spoiled(tmp_path, "output", "samples")
    if "the samples since they were last saved were not kept: " in done.stderr:
        pytest.skip("the machine was so slow that they were saved before they could be spoiled")
    assert done.returncode == 8 and "the samples were not kept: " in done.stderr
    assert "is kept in" not in done.stderr


def test_from_the_first_instruction_on(any_python, tmp_path):
    """Threads are listed before they have run anything; they are not forgotten then."""
    def measure(seconds):
        done = run("-c", spin("busy", seconds), python=any_python, output=tmp_path / f"{seconds}.fathom")
        assert done.returncode == 0
        recording = sampled.Recording(tmp_path / f"{seconds}.fathom")
        [process] = recording.processes
        enough.want(sum(row["self_ns"] for row in recording.tree) / process["wall_ns"], 0.9, "of the time seen")

    enough.measured(measure, 0.5)


# ---------------------------------------------------------------- every Python below it

def test_children_of_every_kind(any_python, tmp_path):
    other = next((path for version, path in reversed(INTERPRETERS.items())
                  if path != any_python), any_python)
    log = tmp_path / "log"
    done = run(CHILDREN, log, other, python=any_python, output=tmp_path / "o.fathom")
    assert (done.stdout, done.stderr, done.returncode) == ("all done\n", "", 7)
    noted = {way: (int(pid), int(parent)) for way, pid, parent in
             (line.split() for line in log.read_text().splitlines())}
    recording = sampled.Recording(tmp_path / "o.fathom")
    seen = {}
    for row in recording.processes:
        if row["samples"]:
            seen.setdefault(row["process"], []).append(row)
    main_pid = noted["main"][0]
    for way, (pid, parent) in noted.items():
        assert pid in seen, way
        if way != "double_fork":  # an orphan's parent is whoever has it now
            assert {row["parent"] for row in seen[pid]} == {parent}, way
    assert seen[main_pid][0]["exit_status"] == 7
    [first, second] = seen[noted["exec"][0]]
    assert any(version in second["python"] for version, path in INTERPRETERS.items()
               if path == other)
    assert os.path.realpath(second["executable"]) == os.path.realpath(other)
    assert os.path.realpath(first["executable"]) == os.path.realpath(any_python)
    recording.named("child_fork", "child_spawn", "child_forkserver", "child_shell",
                    "child_double_fork", "before_exec", "child_exec")


def test_children_can_be_left_out(tmp_path):
    code = ("import os, subprocess, sys\n" + spin("parent", 0.2)
            + f"subprocess.run([sys.executable, '-c', {spin('child', 0.4)!r}])\n")
    done = run("--no-children", PYTHON, "-c", code, output=tmp_path / "o.fathom")
    assert done.returncode == 0, done.stderr
    recording = sampled.Recording(tmp_path / "o.fathom")
    recording.named("parent")
    assert "child" not in recording.names() and len(recording.processes) == 1


def test_shell_command(any_python, tmp_path):
    code = spin("in_the_shell", 0.8)
    done = run("sh", "-c", f"'{any_python}' -c '{code}'; exit 3", output=tmp_path / "o.fathom")
    assert (done.returncode, done.stderr) == (3, "")
    sampled.Recording(tmp_path / "o.fathom").named("in_the_shell")


def test_no_python_at_all(tmp_path):
    done = run("sh", "-c", "echo out; exit 4", output=tmp_path / "o.fathom")
    assert (done.returncode, done.stdout) == (4, "out\n")
    assert done.stderr == TOO_SHORT


def test_python_that_is_too_old(tmp_path):
    root = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    found = sorted(root.glob("versions/3.8.*/bin/python3.8"))
    if not found:
        pytest.skip("no CPython 3.8 here")
    done = run(found[0], "-c", "import time; time.sleep(0.3); print('ran')",
               output=tmp_path / "o.fathom")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"fathom run: process \d+: .*Python 3\.8.*", first)
    assert second + "\n" == TOO_SHORT
    assert any("3.8" in note["text"] for note in recordings.report(tmp_path / "o.fathom")["notes"])


# ---------------------------------------------------------------- formats

@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "app.py"
    path.write_text(spin("busy", 0.3))
    return path


def test_speedscope(script, tmp_path):
    assert run(script, python=PYTHON, output=tmp_path / "o.speedscope.json").returncode == 0
    data = json.loads((tmp_path / "o.speedscope.json").read_text())
    assert any(frame["name"] == "busy" for frame in data["shared"]["frames"])
    assert data["profiles"]


def test_pprof(script, tmp_path):
    assert run(script, python=PYTHON, output=tmp_path / "o.pb.gz").returncode == 0
    assert b"busy" in gzip.decompress((tmp_path / "o.pb.gz").read_bytes())


def test_collapsed(script, tmp_path):
    assert run(script, python=PYTHON, output=tmp_path / "o.collapsed").returncode == 0
    lines = (tmp_path / "o.collapsed").read_text().splitlines()
    assert all(re.fullmatch(r".* \d+", line) for line in lines)
    assert any("<module>" in line and "busy" in line for line in lines)


def test_pstats(script, tmp_path):
    """Samples as calls, which every pstats reads; here as what they are."""
    assert run(script, python=PYTHON, output=tmp_path / "o.prof").returncode == 0
    stats = marshal.loads((tmp_path / "o.prof").read_bytes())
    [own] = [row[2] for key, row in stats.items() if key[-1] == "busy"]
    assert own > 0


def test_what_the_user_reads(script, tmp_path):
    done = launch.fathom("run", "--python", PYTHON, script, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("", 0)
    assert "busy" in done.stderr and "samples" in done.stderr
    assert done.stderr.endswith("Recorded to app.fathom; next: fathom report app.fathom\n")
    assert os.listdir(tmp_path) == ["app.fathom"]


@pytest.mark.parametrize("words, part", [
    (["--rate", "0"], "--rate"), (["--rate", "abc"], "--rate"), (["--max-cpu", "0"], "--max-cpu")])
def test_wrong_usage(words, part, tmp_path):
    done = launch.fathom("run", *words, "-c", "print('ran')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert part in done.stderr and os.listdir(tmp_path) == []


# ---------------------------------------------------------------- beside exact numbers

def test_samples_beside_calls_and_lines(python, tmp_path):
    """Calls are counted as without sampling, samples lie in the same tree, one process per pid."""
    done = launch.run(COMBINED, python=python, output=tmp_path / "o.fathom",
                      collectors=("--sample", "--calls", "--lines=work"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    recording = sampled.Recording(tmp_path / "o.fathom")
    pids = [row["process"] for row in recording.processes]
    assert len(pids) == len(set(pids)) == 2, "the program and its child"
    assert all(row["samples"] > 0 for row in recording.processes)
    rows = {row["name"]: row for row in recording.functions}
    assert rows["work"]["calls"] == 2 * 3 and rows["leaf"]["calls"] == 2 * 3 * 1000
    nodes = [row for row in recording.tree if row["name"] == "work"]
    assert len(nodes) == 2, "one in each process, exact and sampled alike"
    assert all(row["calls"] == 3 and row["thread"] for row in nodes)
    under_work = [row for row in recording.tree
                  if row["parent"] in {node["node"] for node in nodes} and row["name"] == "turn"]
    assert len(under_work) == 2 and all(row["calls"] == 3 for row in under_work)
    doing = {row["name"]: row for row in recordings.report(recording.path, "--states")["functions"]}
    assert doing["turn"]["samples"] > 0 and doing["turn"]["calls"] == 6
    assert doing["work"]["total_samples"] >= doing["turn"]["samples"]
    lines = {(row["function"]["name"], row["line"]): row for row in recording.lines()}
    [called] = [row for (name, _), row in lines.items()
                if name == "work" and "turn()" in row["source"]]
    assert called["hits"] == 2 * 3


def test_callgrind_of_samples_beside_calls(tmp_path):
    """The times of samples are not added to exact ones, and what Fathom itself ran is not in it."""
    path = tmp_path / "o.fathom"
    done = launch.run(COMBINED, output=path, collectors=("--sample", "--calls", "--lines=work"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert launch.fathom("convert", path, "-o", tmp_path / "o.callgrind").returncode == 0
    functions = recordings.report(path, "-n", "all")["functions"]
    back = recordings.report(tmp_path / "o.callgrind", "-n", "all")["functions"]
    assert sum(row["self_ns"] for row in back) == sum(row["self_ns"] for row in functions)
    assert all(row["file"] != "<fathom>" for row in functions + back)


def test_reports_of_samples_beside_calls(python, tmp_path):
    """Every report uses what is there: calls with their states, lines and processor time of the samples."""
    path = tmp_path / "o.fathom"
    done = launch.run(COMBINED, python=python, output=path, collectors=("--sample", "--calls"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    [turn] = [row for row in recordings.report(path)["functions"] if row["name"] == "turn"]
    assert turn["calls"] == 6 and turn["samples"] > 0 and sum(turn["states_ns"].values()) > 0
    hottest = recordings.report(path, "--hot", "1")["lines"]
    assert [row["function"]["name"] for row in hottest] == ["turn"] and hottest[0]["samples"] > 0
    running = recordings.report(path, "--cpu")
    [turn] = [row for row in running["functions"] if row["name"] == "turn"]
    assert running["sampled"] and turn["calls"] == 0
    assert turn["self_ns"] == turn["states_ns"]["python"] + turn["states_ns"]["c"] > 0
    assert all(thread["states_ns"]["other"] == 0
               for thread in recordings.report(path, "--cpu", "--threads")["threads"])
    for words in ((), ("--hot", "3"), ("--lines=turn",), ("--cpu",), ("--threads",), ("--tree",),
                  ("--processes",), ("--annotate",), ("--csv",), ("--csv", "--threads")):
        shown = launch.fathom("report", path, *words)
        assert shown.returncode == 0 and "amples" in shown.stdout, (words, shown)
        assert "line hits" not in shown.stdout
    shown = launch.fathom("report", path).stdout
    assert re.search(r"; states (of the [\d,]+ seen whole |of what was not lost )?are right within ± ", shown)


@pytest.mark.parametrize("exact", ["--calls", "--lines"])
def test_tasks_beside_calls_or_lines(exact, python, tmp_path):
    """Two tasks slept 1.2 s each: known of samples alone; what was called and began is exact. By the program's own clock."""
    path = tmp_path / "o.fathom"
    done = launch.run(TASKS, tmp_path / "took", python=python, output=path, collectors=(exact, "--tasks"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    took_ns = {name: 1e9 * seconds for name, seconds in json.loads((tmp_path / "took").read_text()).items()}
    rows = recordings.report(path, "--tree", "--min", "0")["tree"]
    by_node = {row["node"]: row for row in rows}
    roots = [row for row in rows if row["parent"] is None]
    assert len(roots) == 2, "the main thread, and its tasks"
    asleep = {row["name"]: row for row in rows
              if row["depth"] == 2 and top_of(row, by_node) == roots[1]}
    # Not less than half: the tasks are seen when the loop was busy, a sixth of it late; not more than both slept.
    assert 0.5 * took_ns["naps"] < asleep["nap"]["total_ns"] < 1.5 * took_ns["naps"]
    # And main() waited for them as long as one slept.
    assert 0.5 < roots[1]["total_ns"] / (took_ns["naps"] + took_ns["main"]) < 2
    [turn] = [row for row in recordings.report(path)["functions"] if row["name"] == "turn"]
    assert turn["calls"] == 1
    if exact == "--calls":
        assert 0.2e9 <= turn["total_ns"] <= took_ns["turn"], "once, exactly, not with its task's samples"
    else:
        lines = recordings.report(path, "--lines=turn")["functions"][0]["lines"]
        assert lines[0]["hits"] == 1 and sum(row["total_ns"] for row in lines) <= took_ns["turn"]
    [tasks] = [row for row in recordings.report(path, "--threads")["threads"]
               if row["name"].startswith("asyncio tasks")]
    assert tasks["samples"] > 0 and tasks["calls"] == 0


def top_of(row, by_node):
    while row["parent"] is not None:
        row = by_node[row["parent"]]
    return row


THREADS = """
import json, threading, time

def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    spent[threading.current_thread().name] = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)

spent = {}
worker = threading.Thread(target=burn, args=(1.2,), name="worker")
worker.start()
worker.join()
burn(1.2)
print(json.dumps(spent))
"""


@pytest.mark.parametrize("version", INTERPRETERS)
def test_processor_time_of_threads_that_never_block(version, tmp_path):
    """By the threads' own clocks; the kernel's count is at most some 30 ms old when a thread ends."""
    output = tmp_path / "x.fathom"
    done = launch.fathom("run", "-q", "-o", str(output), INTERPRETERS[version], "-c", THREADS)
    spent = json.loads(done.stdout)
    recording = sampled.Recording(output)
    for name in ("worker", "MainThread"):
        seen = recording.thread(name)["cpu_ns"] / 1e9
        assert spent[name] - 0.15 * 1.2 < seen < spent[name] + 0.05, (name, spent, seen)


SHORT_THREADS = """
import json, sys, threading, time

def busy(seconds):
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        pass
    return time.perf_counter() - start

def in_thread(seconds):
    times["in_thread"] += busy(seconds)

def in_main(seconds):
    times["in_main"] += busy(seconds)

times = {"in_thread": 0.0, "in_main": 0.0}
end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    thread = threading.Thread(target=in_thread, args=(0.006,))
    thread.start()
    thread.join()
    in_main(0.006)
print(json.dumps(times))
"""


@pytest.mark.parametrize("version", list(INTERPRETERS)[::3])
def test_threads_that_live_for_milliseconds(version, tmp_path):
    """They are seen from the first look after they began: it was every third of them otherwise."""
    def measure(seconds):
        output = tmp_path / f"{seconds}.fathom"
        done = launch.fathom("run", "-q", "--rate", "1000", "-o", str(output), INTERPRETERS[version], "-c", SHORT_THREADS,
                             seconds)
        recording = sampled.Recording(output)
        enough.want(recording.sampling["rounds"], 500 * seconds, "rounds")
        return json.loads(done.stdout), recording.functions

    times, functions = enough.measured(measure, 1.5)
    true = times["in_thread"] / sum(times.values())
    totals = {row["name"]: row["total_ns"] for row in functions}
    seen = totals["in_thread"] / (totals["in_thread"] + totals["in_main"])
    assert abs(seen - true) < 0.12, (true, seen)


def test_a_process_that_executes_another_ends_once(tmp_path):
    python = list(INTERPRETERS.values())[-1]
    output = tmp_path / "x.fathom"
    launch.fathom("run", "-q", "-o", str(output), python, "-c",
                  "import os, sys, time\npid = os.fork()\n"
                  "if pid == 0:\n    time.sleep(0.3)\n    os.execv(sys.executable, [sys.executable, '-c',"
                  " 'import sys, time; time.sleep(0.4); sys.exit(6)'])\nos.waitpid(pid, 0)")
    ends = [row["exit_status"] for row in sampled.Recording(output).processes]
    assert ends.count(6) == 1 and ends.count(0) == 1, ends
