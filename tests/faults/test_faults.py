"""Every n-th failure of what the operating system gives: memory, files, space, processes.

tests/faults/inject.c makes a call fail; here it is the first, the second, ... until no call is left
to fail. In the program under the profiler (the agent, the preload library, libfathom.so) nobody may
notice: output and status are those of a plain run. The command ends with the program's status and a
readable recording, or with a sentence and a status of its own: never by a signal, and never never.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

import pythons  # noqa: E402
from launch import FATHOM, REPO  # noqa: E402

PROGRAM = str(HERE / "program.py")
PACKAGE = str(Path(FATHOM).resolve().parent / "python")
KINDS = ["", "malloc", "mmap", "space", "open", "write", "rename", "clone", "python"]
STATUSES = {int(row[1]) for row in re.findall(
    r"X\((\w+),\s*-\d+,\s*(\d+)", (REPO / "src/base/error.h").read_text())} | {125, 126}  # docs/run.md
INTERPRETERS = list(pythons.interpreters().values())
OLDEST_AND_NEWEST = sorted({INTERPRETERS[0], INTERPRETERS[-1]}) if INTERPRETERS else []
SECONDS = 60


def is_shared(python):
    """Is the interpreter a library? The functions of one that is a part of its program cannot be put
    behind ours."""
    code = "print('libpython' in open('/proc/self/maps').read())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout == "True\n"


SHARED = [python for python in INTERPRETERS if is_shared(python)]


@pytest.fixture(scope="session")
def inject(tmp_path_factory):
    library = tmp_path_factory.mktemp("faults") / "inject.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", HERE / "inject.c", "-o", library, "-ldl"],
                   check=True)
    return str(library)


def steps(dense, stride):
    """1, 2, 3, ... and then only some."""
    return itertools.chain(range(1, dense), itertools.count(dense, stride))


def until_none_is_left(attempt, numbers):
    """Call attempt(n) for one number after the other, two at a time, until one reaches no failure;
    how many did."""
    reached = 0
    with ThreadPoolExecutor(2) as pool:
        while True:
            pair = list(pool.map(attempt, itertools.islice(numbers, 2)))
            reached += sum(pair)
            if not all(pair):
                return reached


def execute(command, env, cwd):
    """The command's output and status; it is an error if it does not end."""
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    return stdout, stderr, process.returncode


def is_readable(path):
    """A recording, or what the command left when it had to give up, which says how to go on."""
    done = subprocess.run([FATHOM, "report", path, "--json"], capture_output=True, text=True,
                          timeout=SECONDS)
    if done.returncode:
        return done.returncode in STATUSES and "fathom merge" in done.stderr
    return bool(json.loads(done.stdout))


class Run:
    """`fathom run` of the program with one kind of failure."""

    def __init__(self, inject, python, options, where, kind, many, folder):
        self.env = {**os.environ, "LD_PRELOAD": inject, "FATHOM_TMPDIR": str(folder)}
        self.plain = execute([python, PROGRAM], self.env, folder)
        assert self.plain[2] == 5, self.plain
        self.command = [FATHOM, "run", *options, "--quiet", "--python", python]
        self.env.update(FAULT_KIND=kind, FAULT_WHERE=where, FAULT_MANY=str(int(many)))
        self.where, self.folder = where, folder

    def __call__(self, n):
        told, output = self.folder / f"{n}.told", self.folder / f"{n}.fathom"
        told.touch()
        env = {**self.env, "FAULT_AT": str(n), "FAULT_TOLD": str(told)}
        stdout, stderr, status = execute([*self.command, "-o", str(output), PROGRAM], env,
                                         self.folder)
        what = f"failure {n}: status {status}, stderr {stderr!r}, stdout {stdout!r}"
        said = [line for line in stderr.splitlines() if line not in self.plain[1].splitlines()]
        assert all(line.startswith("fathom") for line in said), what
        if self.where == "target" or status == self.plain[2]:
            assert (stdout, status) == (self.plain[0], self.plain[2]), what
            assert said or is_readable(output), what
        else:
            assert status in STATUSES and said, what
            assert stdout in ("", self.plain[0]), what
        if output.exists():
            assert is_readable(output), what
        if status == 16 and not stdout:  # for want of memory, before the program ran
            assert not output.exists(), what
        reached = told.stat().st_size > 0
        told.unlink()
        return reached


@pytest.mark.parametrize("many", [False, True], ids=["one", "all from then on"])
@pytest.mark.parametrize("kind", ["mmap", "space", "open", "malloc"])
@pytest.mark.parametrize("python", OLDEST_AND_NEWEST, ids=os.path.basename)
def test_in_the_program(inject, python, kind, many, tmp_path):
    attempt = Run(inject, python, ["--calls", "--lines=mine"], "target", kind, many, tmp_path)
    assert until_none_is_left(attempt, steps(16, 7 if many else 4)) > 0


@pytest.mark.parametrize("many", [False, True], ids=["one", "all from then on"])
@pytest.mark.parametrize("kind", ["mmap", "space", "open"])
@pytest.mark.parametrize("python", OLDEST_AND_NEWEST, ids=os.path.basename)
def test_in_the_program_whose_memory_is_recorded(inject, python, kind, many, tmp_path):
    attempt = Run(inject, python, ["--memory", "--calls"], "target", kind, many, tmp_path)
    assert until_none_is_left(attempt, steps(16, 11 if many else 7)) > 0


@pytest.mark.parametrize("python", sorted({*SHARED[:1], *SHARED[-1:]}), ids=os.path.basename)
@pytest.mark.parametrize("options", [["--calls"], ["--lines=mine"]], ids=" ".join)
def test_in_the_program_when_python_has_no_memory(inject, python, options, tmp_path):
    """What the agent asks of the interpreter fails, and its exception stays with the agent."""
    attempt = Run(inject, python, options, "target", "python", False, tmp_path)
    assert until_none_is_left(attempt, steps(40, 331)) > 40


@pytest.mark.parametrize("many", [False, True], ids=["one", "all from then on"])
@pytest.mark.parametrize("kind", ["mmap", "open", "write", "rename", "clone", "malloc"])
def test_in_the_command(inject, kind, many, tmp_path):
    attempt = Run(inject, sys.executable, ["--calls", "--lines=mine"], "command", kind, many, tmp_path)
    assert until_none_is_left(attempt, steps(16, 19 if many else 11)) > 0


@pytest.mark.parametrize("kind", ["open", "write", "clone", "malloc"])
def test_in_the_command_that_samples(inject, kind, tmp_path):
    attempt = Run(inject, sys.executable, [], "command", kind, False, tmp_path)
    assert until_none_is_left(attempt, steps(10, 41)) > 0


# Within one process: a profile, and all results of it, at every failure.
RESULTS = """
import ctypes, json, os, sys
import fathom
control = ctypes.CDLL(sys.argv[1])
kind, many = int(sys.argv[2]), int(sys.argv[3])
control.fault_reached.restype = ctypes.c_long

def leaf(n): return n
def numbers(n):
    for i in range(n): yield leaf(i)
def work(n): return work(n - 1) + sum(numbers(3)) if n else 0

def attempt():
    profile = fathom.Profile()
    try:
        profile.enable()
        work(50)
    finally:
        profile.disable()
    profile.dump_stats("o.prof")
    profile.dump_stats("o.fathom")
    profile.dump_stats("o.pb.gz")
    return profile.getstats()

def descriptors():
    return sorted(os.listdir("/proc/self/fd"))

attempt()
before = descriptors()
reached = failed = 0
for n in range(1, 100000):
    control.fault_arm(kind, ctypes.c_long(n), many)
    try:
        attempt()
    except (MemoryError, OSError, ImportError, ValueError, SystemError) as e:
        failed += 1
    finally:
        hit = control.fault_reached()
        control.fault_arm(0, ctypes.c_long(0), 0)
    assert descriptors() == before, n
    assert set(os.listdir(".")) <= {"o.prof", "o.fathom", "o.pb.gz"}, os.listdir(".")
    assert work(50) == 150
    if not hit:
        break
    reached += 1
rows = {row.code.co_name: row.callcount for row in attempt() if hasattr(row.code, "co_name")}
print(json.dumps([reached, failed, rows["work"], rows["leaf"]]))
"""


@pytest.mark.parametrize("many", [False, True], ids=["one", "all from then on"])
@pytest.mark.parametrize("kind", ["malloc", "mmap", "open", "write", "rename", "python"])
@pytest.mark.parametrize("python", OLDEST_AND_NEWEST, ids=os.path.basename)
def test_in_a_program_that_profiles_itself(inject, python, kind, many, tmp_path):
    if kind == "python" and python not in SHARED:
        pytest.skip("its functions are a part of the program")
    env = {**os.environ, "LD_PRELOAD": inject, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}
    stdout, stderr, status = execute(
        [python, "-c", RESULTS, inject, str(KINDS.index(kind)), str(int(many))], env, tmp_path)
    assert (status, stderr) == (0, "")
    reached, failed, *calls = json.loads(stdout)
    assert reached > 0 and (failed > 0 or not many)  # one failure may have a way round it
    assert calls == [51, 150]
