"""`fathom run --trace` from end to end: what it counts is what --calls counts, whoever is killed when; when there is no room
it waits or drops, as it was told; and what is lost is said."""

from __future__ import annotations

import json
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import launch
import pythons
import recordings
from launch import no_core_files, own_run_folders  # noqa: F401 (fixtures)

INTERPRETERS = pythons.interpreters()
NEWEST = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
TRACED = launch.program("traced.py")
ENDS = launch.program("ends.py")
FIXED = dict(os.environ, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")


def trace(*words, **options):
    return launch.run(*words, collectors=("--trace",), **options)


def counts(path, *options):
    """{(file, line, qualname, occurrence): (calls, primitive calls, resumes)}"""
    table = {}
    for row in recordings.report(path, *options)["functions"]:
        key = (row["file"], row["line"], row["qualname"])
        table.setdefault(key, []).append((row["calls"], row["primitive_calls"], row["resumes"]))
    return {key: sorted(rows) for key, rows in table.items()}


def both(python, tmp_path, *words):
    """What --calls and --trace say of the same program; regions around imports are a trace's alone."""
    found = []
    for collector in ("--calls", "--trace"):
        output = tmp_path / f"{collector[2:]}.fathom"
        done = launch.run(*words, collectors=(collector,), python=python, output=output, env=FIXED)
        assert (done.returncode, done.stderr) == (0, "")
        found.append({key: rows for key, rows in counts(output).items() if not key[2].startswith("import ")})
    return found


def notes(path, *kinds):
    return [note for note in recordings.report(path)["notes"] if note["kind"] in (kinds or ("lost", "damaged"))]


# ---- what is counted ----


def test_what_fathom_does_is_not_in_it(python, tmp_path):
    """The program's own start imports much; not one call of ours is among it."""
    calls, traced = both(python, tmp_path, "-c", "import json; print(json.dumps([1, 2]))")
    assert traced == calls
    assert len(traced) > 20


def test_calls_are_those_of_calls(python, tmp_path):
    """Children, generators, coroutines, exceptions, recursion: the counts of all functions."""
    calls, traced = both(python, tmp_path, TRACED)
    assert traced == calls
    # work runs 100 times in the program, 30 and 7 times in its children.
    fib, boom = traced[TRACED, 9, "fib"], traced[TRACED, 18, "boom"]
    assert fib == [(67 * 137, 137, 0)] and boom == [(6 * 137, 137, 0)]  # fib(8) is 67 calls
    (entries, _, resumes), = traced[TRACED, 13, "numbers"]
    assert entries - resumes == 138
    assert resumes - 137 * 20 in (0, 1)  # the unfinished one goes on to be closed, but on 3.13


def test_each_thread_and_process_has_its_own(python, tmp_path):
    output = tmp_path / "o.fathom"
    done = trace(TRACED, "threads", python=python, output=output, env=FIXED)
    assert done.stdout.split() == ["190", "3", "4"]
    processes = recordings.report(output, "--processes")["processes"]
    for process, status in zip(processes, (0, 3, 4), strict=True):  # a child may have ended before anybody looked at it
        assert process["exit_status"] in (status, None if status else 0)
    threads = {thread["name"]: thread for thread in recordings.report(output, "--threads")["threads"]}
    for number in range(3):
        table = counts(output, "--thread", str(threads[f"worker-{number}"]["thread"]))
        assert table[TRACED, 9, "fib"] == [(67 * (10 + number), 10 + number, 0)]
    for process, times in zip(processes[1:], (30, 7)):
        table = counts(output, "--process", str(process["process"]))
        assert table[TRACED, 9, "fib"] == [(67 * times, times, 0)]


def test_times_are_those_of_the_programs_clock(python, tmp_path):
    code = ("import time\n"
            "def nap():\n"
            "    begin = time.perf_counter_ns()\n"
            "    time.sleep(0.02)\n"
            "    return time.perf_counter_ns() - begin\n"
            "begin = time.perf_counter_ns()\n"
            "inside = sum(nap() for _ in range(5))\n"
            "print(inside, time.perf_counter_ns() - begin)\n")
    output = tmp_path / "o.fathom"
    done = trace("-c", code, python=python, output=output)
    inside, outside = map(int, done.stdout.split())
    row = recordings.one(output, "nap")
    assert row["calls"] == 5
    assert inside * 0.99 <= row["total_ns"] <= outside * 1.01
    assert 20_000_000 * 0.99 <= row["min_ns"] <= row["max_ns"] <= row["total_ns"] - 4 * row["min_ns"] + 5


def test_a_pool(python, tmp_path):
    """Workers that a pool ends by a signal, in the middle of whatever they do."""
    script = tmp_path / "pool.py"
    script.write_text("import multiprocessing as m\n"
                      "def inner(n): return n + 1\n"
                      "def task(n): return sum(inner(i) for i in range(n))\n"
                      "if __name__ == '__main__':\n"
                      "    c = m.get_context('fork')\n"
                      "    all_are_there = c.Barrier(3).wait  # or one does everything before the others begin\n"
                      "    with c.Pool(3, all_are_there) as pool: print(sum(pool.map(task, [100] * 60, 1)))\n")
    output = tmp_path / "o.fathom"
    done = trace(script, python=python, output=output)
    assert done.stdout == f"{60 * 5050}\n" and launch.said(done) == ""
    table = recordings.functions(output)
    assert sum(row["calls"] for row in table["task"]) == 60
    assert sum(row["calls"] for row in table["inner"]) == 6000
    assert notes(output) == []


def test_tasks_without_a_name(python, tmp_path):
    """Those of asyncio's own Python code have a method for it, which is not called."""
    code = ("import asyncio\n"
            "async def child(): await asyncio.sleep(0)\n"
            "async def main():\n"
            "    make = lambda loop, coro, **more: asyncio.tasks._PyTask(coro, loop=loop, **more)\n"
            "    asyncio.get_running_loop().set_task_factory(make)\n"
            "    await asyncio.gather(*[child() for _ in range(5)])\n"
            "asyncio.run(main())\n")
    output = tmp_path / "o.fathom"
    assert trace("-c", code, python=python, output=output).returncode == 0
    row = recordings.one(output, "child")
    assert (row["calls"] - row["resumes"], row["resumes"]) == (5, 5)
    assert notes(output) == []


def test_more_processes_than_descriptors(tmp_path):
    """What ended holds nothing open in the launcher."""
    code = ("import os\n"
            "def leaf(): pass\n"
            "for _ in range(200):\n"
            "    if os.fork() == 0:\n"
            "        leaf(); leaf(); os._exit(0)\n"
            "    os.wait()\n")
    output = tmp_path / "o.fathom"
    done = trace("-c", code, python=NEWEST, output=output,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    assert (done.returncode, done.stderr) == (0, "")
    assert recordings.one(output, "leaf")["calls"] == 400
    assert notes(output) == []


def test_another_program_in_the_same_process(python, tmp_path):
    code = ("import os, sys\n"
            "def before(): pass\n"
            "for _ in range(1000): before()\n"
            "os.execv(sys.executable, [sys.executable, '-c', 'def after(): pass\\nfor _ in range(500): after()'])\n")
    output = tmp_path / "o.fathom"
    assert trace("-c", code, python=python, output=output).returncode == 0
    assert recordings.one(output, "before")["calls"] == 1000
    assert recordings.one(output, "after")["calls"] == 500


def test_what_is_left_out_is_its_callers_time(python, tmp_path):
    code = ("import time\n"
            "def leaf(): time.sleep(0.001)\n"
            "def middle(): leaf(); leaf()\n"
            "def quick(): pass\n"
            "def top():\n"
            "    for _ in range(10): middle(); quick()\n"
            "top()\n")
    output = tmp_path / "o.fathom"

    def table(*options):
        done = trace(*options, "-c", code, python=python, output=output, env=FIXED)
        assert (done.returncode, done.stderr) == (0, "")
        output.rename(tmp_path / "last.fathom")
        return recordings.functions(tmp_path / "last.fathom")

    assert table()["leaf"][0]["calls"] == 20
    without = table("--exclude", "leaf", "--no-c-calls")
    assert "leaf" not in without and without["middle"][0]["self_ns"] > 20_000_000
    assert "middle" not in table("--max-depth", "2") and "top" in table("--max-depth", "2")
    assert "middle" in table("--include", "middle") and "top" not in table("--include", "middle")
    slow = table("--min-duration", "20ms")
    assert slow["top"][0]["total_ns"] > 20_000_000
    assert "quick" not in table("--min-duration", "1000s")


# ---- whoever is killed ----


@pytest.mark.parametrize("way", ["exit7", "_exit3", "exception", "segfault", "sigkill"])
def test_however_it_ends(python, way, tmp_path):
    alone = launch.plain(python, ENDS, way)
    output = tmp_path / "o.fathom"
    under = trace(ENDS, way, python=python, output=output)
    assert (under.returncode, under.stdout, under.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert recordings.one(output, "work")["calls"] == 1
    assert launch.run_folders() == [] and notes(output) == []


@pytest.mark.parametrize("calls", [0, 1, 1000, 123_456, 1_000_000])
def test_a_killed_program_has_every_call(calls, tmp_path):
    code = ("import os, signal\n"
            "def call(): pass\n"
            f"for _ in range({calls}): call()\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
    output = tmp_path / "o.fathom"
    done = trace("-c", code, python=NEWEST, output=output)
    assert done.returncode == -signal.SIGKILL
    table = recordings.functions(output)
    assert sum(row["calls"] for row in table.get("call", [])) == calls
    assert table["<built-in method posix.kill>"][0]["calls"] == 1
    assert notes(output) == []


# Goes on when its launcher is gone, and then ends as it is told.
ORPHAN = """
import os, signal, sys, time
def call(): pass
def deep():
    for _ in range({before}): call()
    launcher = os.getppid()
    print("ready", flush=True)
    while os.getppid() == launcher: time.sleep(0.005)
    for _ in range({after}): call()
    {end}
deep()
"""


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize("before, after, end", [(0, 10, "pass"), (10, 10, KILL), (400_000, 10, KILL),
                                                (400_000, 10, "os._exit(0)"), (3_000_000, 1000, "pass")])
def test_a_killed_launcher_loses_nothing(before, after, end, tmp_path):
    """Whatever it had packed, what it had only taken, and what it never saw: merge has it all."""
    output, whole = tmp_path / "o.fathom", tmp_path / "whole.fathom"
    code = ORPHAN.format(before=before, after=after, end=end)
    process = launch.start(launch.FATHOM, "run", "--trace", "-q", "--python", NEWEST, "-o", output, "-c", code)
    assert process.stdout.readline() == "ready\n"
    assert launch.outlived(process) == ""
    again = launch.fathom("merge", output, "--keep", "-o", tmp_path / "again.fathom")
    assert again.returncode == 0, again.stderr
    done = launch.fathom("merge", output, "-o", whole)
    assert (done.returncode, done.stderr) == (0, "")
    for path in (tmp_path / "again.fathom", whole):
        assert recordings.one(path, "call")["calls"] == before + after
        assert recordings.one(path, "deep")["calls"] == 1
        assert recordings.one(path, "deep")["total_ns"] >= recordings.one(path, "call")["total_ns"]
        assert notes(path) == []
    assert launch.run_folders() == []


def test_children_that_are_killed_while_they_begin(tmp_path):
    """Their stores are there and have nothing in them: that is said, and nothing is kept for it."""
    output, whole = tmp_path / "o.fathom", tmp_path / "whole.fathom"
    code = ORPHAN.format(before=10, after=10, end=KILL)
    process = launch.start(launch.FATHOM, "run", "--trace", "-q", "--python", NEWEST, "-o", output, "-c", code)
    assert process.stdout.readline() == "ready\n"
    folder, = launch.run_folders()
    Path(folder, "2000000001.0.live").touch()
    Path(folder, "2000000002.0.live").write_bytes(bytes(4096))
    assert launch.outlived(process) == ""
    done = launch.fathom("merge", output, "-o", whole)
    assert (done.returncode, done.stderr) == (0, "")
    assert recordings.one(whole, "call")["calls"] == 20
    said = [note["text"] for note in notes(whole, "lost", "damaged", "unprofiled")]
    assert said == [f"process 200000000{n} ended before anything of it was recorded" for n in (1, 2)]
    assert launch.run_folders() == []


def test_the_recording_so_far(tmp_path):
    """A signal writes what there is; the run goes on, and its end has everything."""
    output = tmp_path / "o.fathom"
    code = ("import sys\n"
            "def call(): pass\n"
            "def deep():\n"
            "    for _ in range(1000): call()\n"
            "    print('ready', flush=True)\n"
            "    sys.stdin.readline()\n"
            "    for _ in range(234): call()\n"
            "deep()\n")
    process = launch.start(launch.FATHOM, "run", "--trace", "-q", "--flush-signal", "USR1", "--python", NEWEST,
                           "-o", output, "-c", code, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    facts = output.stat().st_ino
    process.send_signal(signal.SIGUSR1)
    while output.stat().st_ino == facts:
        assert process.poll() is None
        time.sleep(0.005)
    assert recordings.one(output, "call")["calls"] == 1000
    assert recordings.one(output, "deep")["calls"] == 1
    process.communicate("\n", timeout=launch.TIMEOUT)
    assert process.returncode == 0
    assert recordings.one(output, "call")["calls"] == 1234
    assert notes(output, "lost", "damaged", "cut-off") == []


# ---- no room ----

# Its launcher stands still while it makes more calls than there is room for.
CALLS = 4_000_000
STILL = """
import os, signal
def call(): pass
launcher = os.getppid()
os.kill(launcher, signal.SIGSTOP)
while open(f"/proc/{launcher}/stat").read().rsplit(")")[-1].split()[0] != "T": pass
print(os.getpid(), flush=True)
for _ in range(%d): call()
os.kill(launcher, signal.SIGCONT)
""" % CALLS


def start_still(tmp_path, *options):
    process = launch.start(launch.FATHOM, "run", "--trace", "-q", *options, "--python", NEWEST, "-o",
                           tmp_path / "o.fathom", "-c", STILL)
    return process, int(process.stdout.readline())


def test_a_program_waits_for_room(tmp_path):
    process, pid = start_still(tmp_path)
    folder, = launch.run_folders()
    with open(os.path.join(folder, f"{pid}.0.trace"), "r+b") as file, mmap.mmap(file.fileno(), 4096) as header:
        while not struct.unpack_from("<I", header, 132)[0]:  # threads_wait
            assert process.poll() is None
            time.sleep(0.005)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=launch.TIMEOUT)
    assert process.returncode == 0
    assert recordings.one(tmp_path / "o.fathom", "call")["calls"] == CALLS
    assert notes(tmp_path / "o.fathom") == []


def test_what_is_dropped_is_said(tmp_path):
    process, _ = start_still(tmp_path, "--on-full", "drop")
    process.communicate(timeout=launch.TIMEOUT)
    assert process.returncode == 0
    lost, = notes(tmp_path / "o.fathom")
    assert lost["kind"] == "lost" and "there was no room" in lost["text"]
    calls = recordings.one(tmp_path / "o.fathom", "call")["calls"]
    # As many calls as returns are missing, but for those at the ends of a gap; the end of the program, which calls a few
    # other functions, may be missing as well.
    assert 0 < calls < CALLS and -2 <= calls + lost["count"] / 2 - CALLS <= 1000


def test_what_is_lost_at_last_is_marked(tmp_path):
    """A program that ends, or is killed, while there is no room: where its timeline ends is seen."""
    for end in ("pass", KILL):
        output, chrome = tmp_path / f"{len(end)}.fathom", tmp_path / f"{len(end)}.chrome.json"
        code = STILL.replace("os.kill(launcher, signal.SIGCONT)", end)
        process = launch.start(launch.FATHOM, "run", "--trace", "-q", "--on-full", "drop", "--python", NEWEST, "-o", output, "-c", code)
        pid = int(process.stdout.readline())
        while Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z":
            time.sleep(0.005)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=launch.TIMEOUT)
        lost, = notes(output)
        assert launch.fathom("convert", output, "--max-depth", "2", "-o", chrome).returncode == 0
        events = json.loads(chrome.read_text())["traceEvents"]
        begin, finish = [event for event in events if event.get("cat") == "lost"]
        assert begin["args"]["events"] == lost["count"] and begin["ts"] < finish["ts"]
        assert begin["ts"] >= max(event["ts"] for event in events if event["ph"] == "E")
        columns, = re.findall("^MainThread +(.+)$", launch.fathom("report", output, "--timeline").stdout, re.M)
        assert re.fullmatch("[A-Z· ]+!+", columns)


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


MANY = ("def call(): pass\n"
        "for _ in range(2_000_000): call()\n"
        "print('done')\n")


def test_a_full_disk(small, tmp_path):
    """There is room for a part. The program does not notice, and the loss is said."""
    output = tmp_path / "o.fathom"
    done = trace("-c", MANY, python=NEWEST, output=output, env=dict(os.environ, FATHOM_TMPDIR=str(small)))
    assert (done.stdout, done.returncode) == ("done\n", 0)
    calls = recordings.one(output, "call")["calls"]
    texts = [note["text"] for note in notes(output, "lost")]
    assert calls <= 2_000_000 and (calls == 2_000_000 or texts), texts
    assert os.listdir(small) == []


def test_a_recording_that_cannot_be_written(small, tmp_path):
    """Nothing half is left; what was recorded stays where merge finds it."""
    output = small / "o.fathom"
    code = ("import os\n"
            f"os.write(os.open({str(small / 'full')!r}, os.O_CREAT | os.O_WRONLY), bytes(1 << 21))\n" + MANY)
    done = trace("-c", code, python=NEWEST, output=output)
    assert (done.stdout, done.returncode) == ("done\n", 8)
    assert "No space left" in done.stderr
    folder = re.search(r"`fathom merge (\S+) -o NAME` reads it", done.stderr).group(1)
    (small / "full").unlink()
    whole = launch.fathom("merge", folder, "-o", tmp_path / "whole.fathom")
    assert whole.returncode == 0, whole.stderr
    assert recordings.one(tmp_path / "whole.fathom", "call")["calls"] == 2_000_000
    assert launch.run_folders() == []


# ---- recordings ----


def test_merged_recordings(tmp_path):
    for number in (1, 2):
        code = f"def call{number}(): pass\nfor _ in range({number} * 1000): call{number}()\n"
        assert trace("-c", code, python=NEWEST, output=tmp_path / f"{number}.fathom").returncode == 0
    whole = tmp_path / "whole.fathom"
    done = launch.fathom("merge", tmp_path / "1.fathom", tmp_path / "2.fathom", "-o", whole)
    assert (done.returncode, done.stderr) == (0, "")
    for number in (1, 2):
        assert recordings.one(whole, f"call{number}")["calls"] == number * 1000
    assert notes(whole) == []
    assert whole.stat().st_size > 1000


def stored(path, kind):
    """The sizes of the blocks of that type in a .fathom file (docs/format.md)."""
    data, at, sizes = path.read_bytes(), 16, []
    while at < len(data):
        _, found, _, size = struct.unpack_from("<IHHI", data, at)
        sizes += [size] * (found == kind)
        at += 24 + size
    return sizes


EVENTS = 34


def test_only_the_last_of_a_long_run(tmp_path, own_run_folders):
    """What is older than the window is given back while the program runs; tables have all of it."""
    code = ("import glob, os, sys, time\n"
            "def early(): pass\n"
            "def late(): pass\n"
            "for _ in range(200_000): early()\n"
            "def kept():\n"
            "    found = glob.glob(f\"{os.environ['FATHOM_TMPDIR']}/*/{os.getpid()}.0.packed\")\n"
            "    with open(found[0] if found else os.devnull, 'rb') as file: return file.read()\n"
            "def until(condition):\n"
            "    while not condition(): time.sleep(0.01)\n"
            "if sys.argv[1:]:\n"  # all that was early is packed with the next blocks; then only little of it is left
            "    until(kept)\n"
            "    size = len(kept())\n"
            "    until(lambda: len(kept()) > size)\n"
            "    size = len(kept())\n"
            "    until(lambda: kept()[:size].count(0) > size * 3 // 4)\n"
            "for _ in range(1000): late()\n")
    whole, window = tmp_path / "whole.fathom", tmp_path / "window.fathom"
    assert trace("--no-c-calls", "-c", code, python=NEWEST, output=whole).returncode == 0
    done = trace("--no-c-calls", "--window", "100ms", "-c", code, "wait", python=NEWEST, output=window)
    assert (done.returncode, done.stderr) == (0, "")
    for path in (whole, window):
        assert recordings.one(path, "early")["calls"] == 200_000
        assert recordings.one(path, "late")["calls"] == 1000
    assert sum(stored(window, EVENTS)) < sum(stored(whole, EVENTS)) / 2
    assert notes(whole, "window") == [] and len(notes(window, "window")) == 1
