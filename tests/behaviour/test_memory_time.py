"""What was alive at any instant: `fathom report --memory --at TIME`, against programs that hold known blocks for known times."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import textwrap
import time

import pytest

import launch
import recordings
from launch import FATHOM, fathom, program

PHASES = program("memory_phases.py")
LATE = .15  # s; how late a slice may be on a machine that has other things to do


def marks(path):
    return {match[1]: number for number, line in enumerate(open(path), 1)
            if (match := re.search(r"  # ([a-z]+)$", line))}


def record(folder, python, path, *words, options=("--memory",)):
    output = folder / "out.fathom"
    done = launch.run(path, *words, python=python, output=output, collectors=options)
    assert (done.returncode, done.stderr) == (0, ""), done
    return output, done.stdout


def at(recording, when, path=PHASES):
    """{line: (bytes, blocks)} of what was alive then, of that file, and the whole report."""
    report = recordings.report(recording, "--memory", "--at", when)
    return {row["line"]: (row["then_bytes"], row["then_blocks"]) for row in report["functions"]
            if row["file"] == str(path)}, report


def length_of(recording):
    """Seconds: what is after it is refused, and named."""
    done = fathom("report", "--memory", "--at", "1000h", str(recording))
    assert done.returncode == 12
    return float(re.search(r"from 0 to ([\d.]+)s", done.stderr)[1])


def began(recording):
    """When the run began, by the clock of the program."""
    return recordings.report(recording, "--memory", "--at", "0s")["time"]["run_begin_ns"] / 1e9


def begins(recording, line, end, path=PHASES):
    """When the line first has something, to the slice."""
    low, high = 0, end
    while high - low > .002:
        middle = (low + high) / 2
        if at(recording, f"{middle}s", path)[0].get(line, (0, 0))[0]:
            high = middle
        else:
            low = middle
    return high


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """By interpreter: the recording, {phase: (when, bytes)} in seconds of the run."""
    known = {}

    def call(python):
        if python not in known:
            output, text = record(tmp_path_factory.mktemp("phases"), python, PHASES)
            said = {name: (float(when), int(value)) for name, when, value in
                    (line.split() for line in text.splitlines())}
            zero = began(output)
            known[python] = output, {name: (when - zero, value) for name, (when, value) in said.items()}
        return known[python]

    return call


def test_known_blocks(python, phases):
    """To the byte, in each phase."""
    recording, said = phases(python)
    first, second = marks(PHASES)["first"], marks(PHASES)["second"]
    alive = {"first": (said["first"][1], 0), "second": (said["first"][1], said["second"][1]),
             "freed": (0, said["second"][1])}
    blocks = {"first": (2, 0), "second": (2, 3000), "freed": (0, 3000)}
    for phase, expected in alive.items():
        lines, report = at(recording, f"{said[phase][0] + LATE}s")
        assert (lines.get(first, (0, 0)), lines.get(second, (0, 0))) == tuple(zip(expected, blocks[phase])), phase
        assert 0 <= report["time"]["asked_ns"] - report["time"]["shown_ns"] < 1e9 * LATE
        assert report["at"] == "time" and report["time"]["processes"] == 1
    assert not at(recording, "0s")[0]


def test_difference(python, phases):
    recording, said = phases(python)
    before, after = said["second"][0] + LATE, said["freed"][0] + LATE
    lines, report = at(recording, f"{before}s..{after}s")
    assert lines[marks(PHASES)["first"]] == (-said["first"][1], -2)
    assert marks(PHASES)["second"] not in lines
    lines, report = at(recording, f"{said['begin'][0] + LATE}s..{before}s")
    assert lines[marks(PHASES)["first"]] == (said["first"][1], 2)
    assert lines[marks(PHASES)["second"]] == (said["second"][1], 3000)
    assert report["from"]["asked_ns"] < report["time"]["asked_ns"]
    order = [row["then_bytes"] for row in report["functions"]]
    assert order == sorted(order, reverse=True)


def test_every_report(python, phases):
    recording, said = phases(python)
    when = f"{said['second'][0] + LATE}s"
    both = said["first"][1] + said["second"][1]
    for words in ("--memory=tree", "--memory=lines", "--memory=threads", "--memory=processes", "--memory=functions",
                  "--memory=stats", "--callers"):
        text = fathom("report", words, "--memory", "--at", when, str(recording))
        assert text.returncode == 0, text
        assert re.search(rf"^alive at {float(when[:-1]):.3f} s: .*, as looked at \d+\.\d ms before$", text.stdout, re.M)
    functions = recordings.report(recording, "--memory=functions", "--at", when)["functions"]
    sizes = {row["name"]: row["total_then_bytes"] for row in functions}
    assert (sizes["first"], sizes["second"]) == (said["first"][1], said["second"][1])
    [path] = {row["file"] for row in functions if row["name"] == "first"}  # each import is called <module>, too
    [module] = [row for row in functions if (row["name"], row["file"]) == ("<module>", path)]
    assert module["total_then_bytes"] >= both
    done = fathom("report", "--memory", "--at", when, "--csv", str(recording))
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    assert {row["function"]: int(row["then_bytes"]) for row in rows}["first"] == said["first"][1]
    tree = recordings.report(recording, "--memory=tree", "--at", f"{said['freed'][0] - LATE}s..100%")["tree"]
    assert any(node["name"] == "first" and node["then_bytes"] == -said["first"][1] for node in tree)


def test_end(python, phases):
    """The last instant is what was never freed."""
    recording, _ = phases(python)
    rows = recordings.report(recording, "--memory", "--at", "100%")["functions"]
    assert all(row["then_bytes"] == row["leaked_bytes"] for row in rows)
    assert [row["then_bytes"] for row in rows]


@pytest.mark.parametrize("when", ["2.5", "-1s", "s", "1s..", "..1s", "1s..2s..3s", "101%", "1x", "nan s", "time", ""])
def test_no_time(when, phases, python):
    done = fathom("report", "--memory", f"--at={when}", str(phases(python)[0]))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "a time of the run (2.5s" in done.stderr


def test_refusals(phases, python, tmp_path):
    recording = str(phases(python)[0])
    done = fathom("report", "--memory", "--at", "60%..10%", recording)
    assert done.returncode == 2 and "is after" in done.stderr
    done = fathom("report", "--memory", "--sort", "then", recording)
    assert done.returncode == 2 and "say which time" in done.stderr
    tool = FATHOM.rsplit("/", 1)[0] + "/tests/unit/tool_memory"
    subprocess.run([tool, tmp_path / "x.fathom"], check=True, timeout=300)
    done = fathom("report", "--memory", "--at", "1s", str(tmp_path / "x.fathom"))
    assert done.returncode == 12 and "does not say what was alive over time" in done.stderr


PARTS = """
    import os, sys, threading, time
    print(sys.getsizeof(bytearray(1)) - 1, flush=True)
    def hold(size):
        return bytearray(size)  # hold
    def thread():
        kept[1] = bytearray(3_000_000)  # thread
    kept = [hold(1_000_000), None, None, None]
    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    time.sleep(.3)
    (has, tells), (end, ends) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        kept[2] = bytearray(5_000_000)  # child
        kept[0] = None
        os.write(tells, b"x")
        os.read(end, 1)
        os._exit(0)
    os.read(has, 1)
    time.sleep(.3)
    kept[3] = bytearray(7_000_000)  # parent
    time.sleep(.5)
    os.write(ends, b"x")
    os.waitpid(child, 0)
    time.sleep(.3)
    os._exit(0)
"""


def test_threads_and_fork(python, tmp_path):
    path = tmp_path / "app.py"
    path.write_text(textwrap.dedent(PARTS))
    recording, text = record(tmp_path, python, path)
    line = marks(path)
    end = length_of(recording)
    child, parent = (begins(recording, line[name], end * .75, path) for name in ("child", "parent"))
    head = int(text)
    lines, report = at(recording, f"{child - .1}s", path)
    assert report["time"]["processes"] == 1
    assert [lines[line[name]][0] for name in ("hold", "thread")] == [1_000_000 + head, 3_000_000 + head]
    lines, report = at(recording, f"{child + LATE}s", path)
    assert report["time"]["processes"] == 2
    assert lines[line["child"]] == (5_000_000 + head, 2) and line["parent"] not in lines
    lines, report = at(recording, f"{parent + LATE}s", path)
    assert lines[line["parent"]] == (7_000_000 + head, 2) and lines[line["child"]][0] == 5_000_000 + head
    lines, report = at(recording, f"{end - .1}s", path)  # the child has ended
    assert report["time"]["processes"] == 1
    assert line["child"] not in lines and lines[line["parent"]][0] == 7_000_000 + head


def test_launcher_is_killed(python, tmp_path):
    """What was looked at until then is in what `fathom merge` makes of the run, and nothing stays behind."""
    output = tmp_path / "out.fathom"
    launcher = launch.start(FATHOM, "run", "-q", "--memory", "--python", python, "-o", output, PHASES)
    said = {}
    for line in launcher.stdout:
        name, when, value = line.split()
        said[name] = float(when), int(value)
        if name == "second":
            break
    time.sleep(LATE)
    launch.outlived(launcher)
    folder = subprocess.run(["grep", "-a", "-o", r"/[a-z/]*fathom-[A-Za-z0-9-]*", output], capture_output=True, text=True).stdout.split()
    merged = tmp_path / "all.fathom"
    done = fathom("merge", output, "-o", merged)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert not any(os.path.exists(path) for path in folder)
    first = begins(merged, marks(PHASES)["first"], length_of(merged))
    lines, _ = at(merged, f"{first + said['second'][0] - said['first'][0] + LATE / 2}s")
    assert lines[marks(PHASES)["first"]] == (said["first"][1], 2)
    assert lines[marks(PHASES)["second"]] == (said["second"][1], 3000)


def test_merged_runs(python, phases, tmp_path):
    """Each by its own beginning."""
    recording, said = phases(python)
    both = tmp_path / "both.fathom"
    assert fathom("merge", recording, recording, "-o", both).returncode == 0
    when = f"{said['second'][0] + LATE}s"
    assert at(both, when)[0][marks(PHASES)["first"]][0] == 2 * said["first"][1]
    several = recordings.report(recording, str(recording), "--memory", "--at", when)["functions"]
    assert {row["name"]: row["then_bytes"] for row in several}["second"] == 2 * said["second"][1]


# ---- every event ----

EVENTS = """
    import ctypes, os, sys, threading, time
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.realloc.argtypes = ctypes.c_void_p, ctypes.c_size_t
    libc.free.argtypes = ctypes.c_void_p,
    rounds, how = int(sys.argv[1]), sys.argv[2]
    kept = [None] * 500
    def work(number):
        for i in range(rounds):
            kept[(i * 7 + number) % 500] = bytes(i % 3000)  # kept
            if i % 16 == 0:
                block = libc.realloc(libc.malloc(100 + i), 50 + i)
                if i % 64:
                    libc.free(block)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3) if how != "fork"]
    if how == "fork":
        work(0)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if how == "fork" and os.fork() == 0:
        work(9)
    elif how == "fork":
        os.wait()
    leave, pause = os._exit, time.sleep  # so that nothing is looked up, and made or freed for that, at the end
    print("done", flush=True)
    pause(.4)
    leave(0)
"""


def left(recording):
    """By process, line and file: what the accounts say is left. That was alive a little before the end, too: nothing
    happened in between. So if no event is missing, and none is there twice, both are the same."""
    found = []
    for process in recordings.report(recording, "--memory=processes")["processes"]:
        if process["recorded"] == "no":
            continue
        words = "--memory", "--process", str(process["process"])
        rows = recordings.report(recording, *words, "--at", "end")["functions"]
        found.append((process["process"], {(row["name"], row["file"], row["line"]): (row["leaked_bytes"], row["leaked_blocks"])
                                           for row in rows if row["leaked_bytes"]}))
    return found


def then_of(recording, when, process):
    rows = recordings.report(recording, "--memory", "--process", str(process), "--at", when)
    assert rows["time"]["exact"] is True
    return {(row["name"], row["file"], row["line"]): (row["then_bytes"], row["then_blocks"])
            for row in rows["functions"] if row["then_bytes"]}


@pytest.mark.parametrize("how", ["threads", "fork"])
def test_no_event_is_missing(python, how, tmp_path):
    """More than the ring holds, by several threads, in two worlds."""
    path = tmp_path / "app.py"
    path.write_text(textwrap.dedent(EVENTS))
    recording, _ = record(tmp_path, python, path, "120000" if how == "threads" else "20000", how, options=("--memory=events",))
    end = length_of(recording)
    processes = left(recording)
    assert len(processes) == (2 if how == "fork" else 1)
    parent = processes[0][0]
    for process, kept in processes:
        # The child ended when the parent's pause began: that is as long.
        when = f"{end - .2}s" if process == parent else f"{end - .6}s"
        assert len(kept) > 5
        assert then_of(recording, when, process) == kept
    notes = recordings.report(recording, "--memory")["notes"]
    assert not [note for note in notes if note["kind"] == "lost" and "events" in note["text"]]


def test_events_of_known_blocks(python, tmp_path):
    recording, text = record(tmp_path, python, PHASES, options=("--memory=events",))
    said = {name: (float(when), int(value)) for name, when, value in (line.split() for line in text.splitlines())}
    first, second = marks(PHASES)["first"], marks(PHASES)["second"]
    zero = began(recording)
    # Not looked at now and then: at the very instant at which the program says so it is there already.
    lines, report = at(recording, f"{said['first'][0] - zero:.6f}s")
    assert lines[first] == (said["first"][1], 2) and second not in lines
    assert report["time"]["exact"] is True
    lines, _ = at(recording, f"{said['second'][0] - zero:.6f}s")
    assert lines[first] == (said["first"][1], 2) and lines[second] == (said["second"][1], 3000)
    lines, _ = at(recording, f"{said['freed'][0] - zero:.6f}s")
    assert first not in lines and lines[second] == (said["second"][1], 3000)
    assert re.search("^alive at .*, to the event$", fathom("report", "--memory", "--at", "50%", str(recording)).stdout, re.M)


def test_a_launcher_that_stands_still(python, tmp_path):
    """The program waits for it, and nothing is lost."""
    path, output = tmp_path / "app.py", tmp_path / "out.fathom"
    path.write_text(textwrap.dedent(EVENTS))
    launcher = launch.start(FATHOM, "run", "-q", "--memory=events", "--python", python, "-o", output, path, "250000", "threads")
    time.sleep(.5)
    launcher.send_signal(signal.SIGSTOP)
    time.sleep(1)
    launcher.send_signal(signal.SIGCONT)
    out, err = launcher.communicate(timeout=launch.TIMEOUT)
    assert (launcher.returncode, out, err) == (0, "done\n", "")
    (process, kept), = left(output)
    assert then_of(output, f"{length_of(output) - .2}s", process) == kept


def test_events_and_a_killed_launcher(python, tmp_path):
    """The program goes on after a while; what could not be told is counted."""
    path, output = tmp_path / "app.py", tmp_path / "out.fathom"
    path.write_text(textwrap.dedent(EVENTS))
    launcher = launch.start(FATHOM, "run", "-q", "--memory=events", "--python", python, "-o", output, path, "250000", "threads")
    time.sleep(.5)
    assert launch.outlived(launcher) == "done\n"
    merged = tmp_path / "all.fathom"
    done = fathom("merge", output, "-o", merged)
    assert (done.returncode, done.stderr) == (0, ""), done
    report = recordings.report(merged, "--memory", "--at", "100%")
    assert [note for note in report["notes"] if note["kind"] == "lost" and "events of memory" in note["text"]]
    rows = report["functions"]
    assert all(row["then_bytes"] == row["leaked_bytes"] for row in rows)
