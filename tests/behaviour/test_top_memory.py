"""`fathom top --memory` as a user sees it, of programs whose memory is known."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import FATHOM
from launch import fathom
from test_top import program, terminal  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

KNOWN = """
import os, sys, time
kept = [None] * 64
def grow():
    for i in range(64):
        kept[i] = bytes(1 << 20)
def churn():
    for i in range(20):
        bytearray(1 << 20)
grow()
churn()
print(os.getpid(), flush=True)
sys.stdin.readline()
{after}
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def recorded(python, tmp_path):
    """Start a program under `fathom run --memory`; (its process, the number of the program)."""
    running = []

    def run(after="", *options):
        script = tmp_path / "watched.py"
        script.write_text(KNOWN.format(after=after))
        process = subprocess.Popen(
            [FATHOM, "run", *(options or ["--memory"]), "-q", "-o", str(tmp_path / "out.fathom"), "--python",
             python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process, int(process.stdout.readline())

    yield run
    for process in running:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def say(process, until="done\n"):
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == until


@pytest.mark.parametrize("columns", [80, 140])
def test_exact_numbers(recorded, terminal, columns):  # noqa: F811
    _, pid = recorded()
    window = terminal(FATHOM, "top", "--memory", "--delay", "0.2", pid, columns=columns)
    screen = window.wait(r"growth 0")
    row = next(line for line in screen.splitlines() if " grow " in line)
    assert "64.0 MiB" in row and "watched.py:4" in row and re.search(r"\b64\b", row)
    assert re.search(r"alive 6\d\.\d MiB in [\d,]+ blocks", screen) and "resident" in screen
    window.keys("l")
    assert "watched.py:6" in window.wait(r"line\b.*\n.*grow")
    window.keys("q")
    window.wait("EXIT 0")


def test_growth(recorded, terminal):  # noqa: F811
    process, pid = recorded("more = [bytes(200 << 20)]")
    window = terminal(FATHOM, "top", "--memory", "--delay", "0.3", pid)
    window.wait(r"growth 0")
    window.keys(" ")
    window.wait("PAUSED")
    say(process)
    window.keys("d", " ")
    screen = window.wait(r"^ +200 MiB")
    assert screen.splitlines()[4].split()[:2] == ["200", "MiB"]


def test_the_end_of_the_process(recorded, terminal):  # noqa: F811
    process, pid = recorded()
    window = terminal(FATHOM, "top", "--memory", "--delay", "0.2", pid)
    window.wait(r"64\.0 MiB")
    process.stdin.close()
    process.wait()
    screen = window.wait("the process has ended")
    assert "ended after" in screen
    window.keys("q")
    window.wait("EXIT 0")


def test_another_program_is_followed(recorded, terminal, tmp_path):  # noqa: F811
    second = tmp_path / "second.py"
    second.write_text("def mine(): return bytes(33 << 20)\nx = mine()\nprint('done', flush=True)\nimport sys\nsys.stdin.readline()\n")
    process, pid = recorded(f"os.execv(sys.executable, [sys.executable, {str(second)!r}])")
    window = terminal(FATHOM, "top", "--memory", "--delay", "0.2", pid)
    window.wait(r"64\.0 MiB")
    say(process)
    assert "33.0 MiB" in window.wait(r"mine +second\.py")


def test_a_process_without(program):  # noqa: F811
    process = program()
    done = fathom("top", "--memory", str(process.pid))
    assert done.returncode == 18
    assert done.stderr.startswith(f"fathom top: process {process.pid} records no memory: start it by")
    assert process.poll() is None


def test_a_run_of_calls_has_none(recorded):
    _, pid = recorded("", "--calls")
    assert fathom("top", "--memory", str(pid)).returncode == 18


def test_a_child_without_a_store_is_not_its_parent(tmp_path, recorded):
    process, pid = recorded("os.system('sleep 5 & echo $! > " + str(tmp_path / "child") + "')")
    say(process)
    child = (tmp_path / "child").read_text().strip()
    assert fathom("top", "--memory", child).returncode == 18


def test_wrong_uses():
    assert fathom("top", "--memory", "2147483647").returncode == 3
    assert fathom("top", "--memory").returncode == 2
    assert fathom("top", "--memory", "-o", "x.fathom", str(os.getpid())).returncode == 2


def test_needs_a_terminal(recorded):
    _, pid = recorded()
    done = fathom("top", "--memory", str(pid))
    assert done.returncode == 2 and "terminal" in done.stderr


def test_the_store_may_be_anything(tmp_path):
    """A process that maps a file of that name with nonsense in it."""
    code = """
import mmap, os, sys
path = os.path.join(sys.argv[1], f"{os.getpid()}.0.heap")
with open(path, "wb") as file:
    file.write(bytes(20000))
with open(path, "r+b") as file:
    m = mmap.mmap(file.fileno(), 0)
print("ready", flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        assert fathom("top", "--memory", str(process.pid)).returncode == 18
        process.stdin.close()
