"""How a running thread is held still while it is read: by sitting on its processor, by stopping it, or not at all. Whatever
is refused, the next way is taken, stacks are right as long as one of the first two is left, and the recording says which it was."""

import json
import os
import subprocess
import sys

import pytest

import enough
import launch
import pythons
import sampled
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.sampled()
pytestmark = pytest.mark.skipif(not INTERPRETERS, reason="no interpreter is here")

# The newest frame is that of a generator which C resumes. Its signals come every millisecond.
PROGRAM = """
import json, select, signal, sys, time
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
def values(n):
    for _ in range(n):
        x = 0
        for i in range(20000):
            x += i
        yield x
def main():
    while not select.select([0], [], [], 0)[0]:
        sum(values(10))
if "signals" in sys.argv:
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
print(json.dumps({"ready": True}), flush=True)
main()
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps({"ticks": ticks}), flush=True)
"""

SHIM = """
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{ (void)pid; (void)size; (void)set; errno = EINVAL; return -1; }
#ifdef NO_PTRACE
long ptrace(int request, ...) { (void)request; errno = EPERM; return -1; }
#endif
"""


@pytest.fixture(scope="module")
def shims(tmp_path_factory):
    """Libraries that refuse the first way, and the first two."""
    folder = tmp_path_factory.mktemp("shims")
    source = folder / "shim.c"
    source.write_text(SHIM)
    found = {}
    for name, words in (("no seat", []), ("nothing", ["-DNO_PTRACE"])):
        found[name] = folder / f"{name.replace(' ', '_')}.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", found[name], *words, source], check=True)
    return found


def attached(version, tmp_path, *words, preload=None, program=(), env=None):
    """A recording of half a second of the program, and what it said when it was over."""
    output = tmp_path / "x.fathom"
    with sampled.Program(INTERPRETERS[version], "-c", PROGRAM, *program, env={**os.environ, **(env or {})}) as target:
        done = subprocess.run([launch.FATHOM, "attach", str(target.pid), "-q", "-o", output, "--duration", "0.5", *map(str, words)],
                              env={**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=launch.TIMEOUT, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        said, status = target.end()
        assert status == 0
    return sampled.Recording(output), json.loads(said)


def are_whole(recording):
    """Nearly all of the program's time is its generator's."""
    stacks = recording.stacks()
    return stacks.get(("<module>", "main", "values"), 0) > 0.9 * sum(stacks.values()) > 0


def notes(recording):
    """How it was sampled; that a busy machine came late with it, if it says so, is another matter."""
    return [note["text"] for note in recording.notes
            if note["kind"] == "sampling" and "as the machine was busy" not in note["text"]]


@pytest.mark.parametrize("version", INTERPRETERS)
def test_sitting_on_its_processor(version, tmp_path):
    recording, _ = attached(version, tmp_path)
    assert are_whole(recording) and notes(recording) == []


@pytest.mark.parametrize("version", INTERPRETERS)
def test_its_processor_is_asked_of_the_kernel_where_the_c_library_does_not_tell(version, tmp_path):
    recording, _ = attached(version, tmp_path, env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
    assert are_whole(recording) and notes(recording) == []


@pytest.mark.parametrize("version", INTERPRETERS)
def test_stopping_it(version, tmp_path):
    recording, _ = attached(version, tmp_path, "--stop", "--rate", "500")
    assert are_whole(recording)
    assert notes(recording) == ["each running thread was stopped for each look, some 10 µs, by ptrace"]


@pytest.mark.parametrize("version", list(INTERPRETERS)[::3])
def test_stopping_it_loses_no_signal(version, tmp_path):
    def measure(seconds):
        recording, said = attached(version, tmp_path, "--stop", "--rate", "1000", "--force", "--duration", seconds,
                                   program=["signals"])
        assert are_whole(recording) or "tick" in recording.names()
        enough.want(said["ticks"], 100, "signals that came")

    enough.measured(measure, 0.5)


@pytest.mark.parametrize("version", list(INTERPRETERS)[::3])
def test_sitting_is_refused(version, shims, tmp_path):
    recording, _ = attached(version, tmp_path, preload=shims["no seat"])
    assert are_whole(recording)
    [note] = notes(recording)
    assert note.startswith("each running thread was stopped") and "Invalid argument" in note


@pytest.mark.parametrize("version", list(INTERPRETERS)[::3])
def test_everything_is_refused(version, shims, tmp_path):
    recording, _ = attached(version, tmp_path, preload=shims["nothing"])
    [note] = notes(recording)
    assert note.startswith("best effort: the program could not be held still")
    assert recording.sampling["samples"] > 0


@pytest.mark.parametrize("version", list(INTERPRETERS)[-1:])
def test_somebody_else_traces_it(version, tmp_path):
    """A thread has one tracer: then --stop is not to be had, but sitting on its processor is."""
    tracer = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print(json.dumps({}), flush=True)
sys.stdin.read()
"""
    output = tmp_path / "x.fathom"
    with sampled.Program(INTERPRETERS[version], "-c", PROGRAM) as target, \
            sampled.Program(sys.executable, "-c", tracer, str(target.pid)):
        recording = sampled.attach(target.pid, output, "--stop", "--duration", "0.3")
    assert are_whole(recording)
    assert notes(recording) == ["threads were not stopped, but kept from running by sitting on their processor"
                                " (ptrace: Operation not permitted)"]


@pytest.mark.parametrize("version", list(INTERPRETERS)[::3])
def test_stopping_a_program_that_is_our_child(version, tmp_path):
    """The launcher waits for the program too: a stop for a look is none of its business."""
    output = tmp_path / "x.fathom"
    done = launch.fathom("run", "-q", "--stop", "--rate", "500", "-o", str(output), INTERPRETERS[version], "-c",
                         "import sys, time\nend = time.monotonic() + 0.7\nwhile time.monotonic() < end: sum(range(1000))\n"
                         "print('over'); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, "over\n", "")
    assert sampled.Recording(output).sampling["samples"] > 0
