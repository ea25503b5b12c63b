"""What Fathom reads of the code objects and frames of a running Python is what that Python says.

The Python under test writes down the names of its code objects and, for every instruction, what
co_positions() (3.11+), co_lines() (3.10) or dis (3.9) say; build/tests/unit/tool_code reads the
same from outside. Likewise for frames: each scenario stops deep in a call, after writing down its
stack as sys._getframe() shows it.
"""

import glob
import os
import subprocess
import time
from pathlib import Path

import pytest

import pythons
from conftest import FATHOM

TOOL = os.environ.get("FATHOM_TOOL_CODE") or str(
    Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_code"
)
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
VERSIONS = pythons.SAMPLED_VERSIONS


def interpreter(version):
    path = pythons.interpreters().get(version)
    if not path:  # older than what the collectors support, so not in the matrix
        root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        path = next(iter(glob.glob(f"{root}/versions/{version}.*/bin/python{version}")), None)
    return path


@pytest.fixture(params=VERSIONS)
def any_python(request):
    if not os.path.exists(TOOL):
        pytest.skip("tool_code is not built")
    path = interpreter(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine")
    return path


class Target:
    """A Python that runs `program`, which stops at every wait() until it is told to go on."""

    def __init__(self, python, tmp_path, program):
        self.process = subprocess.Popen([python, str(PROGRAMS / program)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd=tmp_path,
                                        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
        self.version, self.runtime = self.line().split()

    def line(self):
        return self.process.stdout.readline().decode().strip()

    def go_on(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        return self.line()

    def settle(self):
        """Until its main thread waits for us in the kernel: reads from descriptor 0."""
        while Path(f"/proc/{self.process.pid}/syscall").read_text().split()[1:2] != ["0x0"]:
            assert self.process.poll() is None
            time.sleep(0.001)

    def tool(self, what, text=""):
        self.settle()
        done = subprocess.run([TOOL, str(self.process.pid), self.version, self.runtime, what],
                              input=text, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate()


def test_code_objects(any_python, tmp_path):
    with Target(any_python, tmp_path, "code_objects.py") as target:
        word, count = target.go_on().split()
        assert word == "written" and int(count) > 500
        seen = target.tool("codes", (tmp_path / "codes").read_text())
    expected = (tmp_path / "expected").read_text().splitlines()
    assert len(seen) == len(expected) > 20000
    wrong = [(i, a, b) for i, (a, b) in enumerate(zip(seen, expected)) if a != b]
    assert not wrong, wrong[:5]


def stacks(lines):
    """{thread: [(name, position), ...]} and {thread: does its newest frame stand at a call of C}"""
    threads, in_c = {}, {}
    for line in lines:
        kind, *words = line.split()
        if kind == "thread":
            frames = threads[words[0]] = []
        else:
            assert kind == "frame", line
            if len(words) == 6:
                in_c.setdefault(id(frames), words.pop(1))
            frames.append((bytes.fromhex(words[0]).decode(), *map(int, words[1:])))
    return threads, {ident: in_c.get(id(frames)) for ident, frames in threads.items()}


def line_of(program, text):
    lines = (PROGRAMS / program).read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if text in line]
    return number


def test_frames(any_python, tmp_path):
    with Target(any_python, tmp_path, "code_frames.py") as target:
        stops = 0
        while (word := target.go_on()) == "stopped":
            stops += 1
            seen, in_c = stacks(target.tool("frames"))
            expected, _ = stacks((tmp_path / "expected").read_text().splitlines())
            assert seen.keys() == expected.keys() and len(seen) == 2
            for ident, frames in expected.items():
                if frames[-1][0] == "<module>":
                    # It wrote this down in describe(), called by stop(), and went on to wait().
                    at = [name for name, *_ in frames].index("stop")
                    assert [frame[:2] for frame in seen[ident][:2]] == [
                        ("wait", line_of("told.py", "os.read(")),
                        ("stop", line_of("code_frames.py", 'wait("stopped")')),
                    ]
                    assert seen[ident][2:] == frames[at + 1:]
                else:
                    assert seen[ident] == frames
                assert in_c[ident] == "1"
        assert word == "done" and stops > 30
