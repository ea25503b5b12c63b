"""Whatever is done with Fathom, the programs it watches do not notice: they are never stopped, compute
what they should, and end as they should. Hundreds of attaches and detaches, and kills in the middle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time

import pytest

import launch
import pythons
import sampled
from launch import own_run_folders  # noqa: F401 (a fixture)

TARGET = launch.program("sampled_target.py")
KINDS = ["threads", "forks", "starts", "executes", "births"]
INTERPRETERS = pythons.sampled()
CYCLES = 60  # for each kind: 300 in all
KILLS = 10   # … and 50

# Each kind on another version, so that every kind of stack is read and every kind of program is;
# the long version of it all is a matter of repeating this with another seed.
PAIRS = [(kind, list(INTERPRETERS)[(number * 3 + shift) % len(INTERPRETERS)])
         for number, kind in enumerate(KINDS) for shift in (0, 1)] if INTERPRETERS else []

pytestmark = pytest.mark.skipif(not INTERPRETERS, reason="no interpreter is here")


class Stops(threading.Thread):
    """Looks at the state of a process all the time, for one that means stopped or traced."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.looks, self.seen, self.over = pid, 0, set(), False
        self.start()

    def run(self):
        while not self.over:
            try:
                for line in open(f"/proc/{self.pid}/status"):
                    if line.startswith(("State:", "TracerPid:")):
                        self.seen.add(line.split()[1])
            except (FileNotFoundError, ProcessLookupError):
                break
            self.looks += 1
            time.sleep(0.001)

    def end(self):
        self.over = True
        self.join()
        assert self.looks > 0
        # Of "State:" a letter, of "TracerPid:" 0.
        assert self.seen <= {"R", "S", "D", "Z", "X", "0"}, self.seen


def attach_and_detach(pid, output, number):
    words = ["--rounds", "3", "--rate", "max"]
    if number % 3 == 1:
        words.append("--tasks")
    if number % 4 == 3:
        words.append(("--cpu", "--gil")[number // 4 % 2])
    done = launch.fathom("attach", "-q", "--force", "-o", output, *words, pid)
    # One that just executes itself anew is for a moment no Python that could be read.
    assert done.returncode in (0, 13, 14), done
    assert done.stderr.count("\n") == (done.returncode != 0)
    return done.returncode == 0


def kill_in_the_middle(pid, output, after):
    process = launch.start(launch.FATHOM, "attach", "-q", "--force", "-o", output, "--rate", "max",
                           pid)
    time.sleep(after)
    process.kill()
    process.communicate(timeout=launch.TIMEOUT)


@pytest.mark.parametrize("kind, version", PAIRS)
def test_attached_again_and_again(kind, version, tmp_path):
    chance = random.Random(f"{kind} {version}")
    with sampled.Program(INTERPRETERS[version], TARGET, kind) as program:
        stops = Stops(program.pid)
        try:
            worked = sum(attach_and_detach(program.pid, tmp_path / "o.fathom", number)
                         for number in range(CYCLES // 2))
            for number in range(KILLS // 2):
                kill_in_the_middle(program.pid, tmp_path / f"{number}.fathom",
                                   chance.random() * 0.06)
        finally:
            stops.end()
        out, status = program.end()
    assert (out, status) == (f'["{kind}", []]\n', 17)
    assert worked > 0
    sampled.Recording(tmp_path / "o.fathom")


def test_many_at_once(tmp_path):
    """Several watch one program at the same time."""
    version = list(INTERPRETERS)[-1]
    with sampled.Program(INTERPRETERS[version], TARGET, "births") as program:
        stops = Stops(program.pid)
        watchers = [launch.start(launch.FATHOM, "attach", "-q", "-o", tmp_path / f"{n}.fathom",
                                 "--duration", "1", program.pid) for n in range(4)]
        for watcher in watchers:
            out, err = watcher.communicate(timeout=launch.TIMEOUT)
            assert (watcher.returncode, out, err) == (0, "", "")
        stops.end()
        out, status = program.end()
    assert (out, status) == ('["births", []]\n', 17)
    for number in range(4):
        sampled.Recording(tmp_path / f"{number}.fathom").named("births")


def test_a_stopped_program_stays_stopped(tmp_path):
    """One that somebody else has stopped is read, and is not continued."""
    version = list(INTERPRETERS)[-1]
    with sampled.Program(INTERPRETERS[version], TARGET, "threads") as program:
        os.kill(program.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
        recording = sampled.attach(program.pid, tmp_path / "o.fathom", "--rounds", "20")
        assert recording.sampling["samples"] > 0 and recording.sampling["lost"] == 0
        assert "T (stopped)" in open(f"/proc/{program.pid}/status").read()
        os.kill(program.pid, signal.SIGCONT)
        out, status = program.end()
    assert (out, status) == ('["threads", []]\n', 17)


@pytest.mark.parametrize("kind", KINDS)
def test_launched(kind, tmp_path):
    """The same programs, sampled from their start to their end as fast as it goes."""
    version = list(INTERPRETERS)[-1 - KINDS.index(kind)]
    output = tmp_path / "o.fathom"
    process = subprocess.Popen([launch.FATHOM, "run", "-q", "--rate", "max", "--flush-signal", "USR1", "-o", str(output),
                                INTERPRETERS[version], "-B", TARGET, kind],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "{}\n"
    sampled.wait_until_seen(process, signal.SIGUSR1, output, kind)
    out, _ = process.communicate(timeout=launch.TIMEOUT)
    assert (out, process.returncode) == (f'["{kind}", []]\n', 17)
    sampled.Recording(output).named(kind)
