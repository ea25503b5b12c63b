"""fathom.memory_usage: memory_profiler's arguments and results. What is expected was compared with
memory_profiler 0.61 on the same calls; where that one is installed, it is asked again."""

import os
import sys

import pytest

from conftest import PACKAGE
from launch import plain

HOLD = """
import os, time
def hold(mib, seconds=.5):
    held = b"x" * (mib << 20)
    time.sleep(seconds)
    return len(held)
"""


def test_a_call(inside):
    values, returned = inside(HOLD + """
result = fathom.memory_usage((hold, (100,)), interval=.02, retval=True)
""")
    assert returned == 100 << 20
    assert 100 <= max(values) - values[0] < 110
    assert 5 <= len(values) < 60


def test_the_highest_alone(inside):
    base, highest, pair, stamped = inside(HOLD + """
base = fathom.memory_usage()[0]
result = [base, fathom.memory_usage((hold, (100,)), max_usage=True),
          fathom.memory_usage((hold, (100,), {"seconds": .3}), max_usage=True, retval=True),
          fathom.memory_usage((hold, (100,)), max_usage=True, timestamps=True)]
""")
    assert 100 <= highest - base < 115
    assert pair[1] == 100 << 20 and 100 <= pair[0] - base < 115
    assert 100 <= stamped[0] - base < 115 and stamped[1] > 1e9


def test_short_calls_are_made_again(inside):
    """Until there are five measurements; or once."""
    times, lengths = inside("""
times = [0, 0]
def short(which):
    times[which] += 1
lengths = [len(fathom.memory_usage((short, (0,)))),
           len(fathom.memory_usage((short, (1,)), max_iterations=1))]
result = times, lengths
""")
    assert times[0] > 1 and times[1] == 1
    assert lengths[1] >= 2


def test_nothing_runs_inside(inside):
    """No thread, no child: what the call sees of itself is as without."""
    alone, waited = inside("""
import os, threading
def look():
    tasks = len(os.listdir("/proc/self/task"))
    try:
        os.waitpid(-1, os.WNOHANG)
        return tasks, "a child"
    except ChildProcessError:
        return tasks, "no child"
result = look(), fathom.memory_usage(look, retval=True, include_children=True)[1]
""")
    assert alone == waited == [1, "no child"]


def test_children_are_added(inside):
    base, alone, together = inside(HOLD + """
import subprocess, sys
def work():
    child = subprocess.Popen([sys.executable, "-c",
                              "held = b'x' * (100 << 20); print(flush=True); input()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(.3)
    child.communicate(b"\\n")
result = [fathom.memory_usage()[0], fathom.memory_usage(work, max_usage=True, interval=.02),
          fathom.memory_usage(work, max_usage=True, interval=.02, include_children=True)]
""")
    assert alone - base < 20
    assert 100 < together - base < 140


def test_what_a_call_raises(inside):
    assert inside("""
def fail():
    raise KeyError("mine")
try:
    fathom.memory_usage(fail)
except KeyError as error:
    result = str(error)
""") == "'mine'"


def test_processes(inside):
    values, several, one, nested, lines = inside("""
import io, os, subprocess, sys
def start():
    return subprocess.Popen([sys.executable, "-c",
                             "import time; held = b'x' * (100 << 20); time.sleep(1)"])
process = start()
values = fathom.memory_usage(process, interval=.05)
several = fathom.memory_usage(-1, interval=.01, timeout=.05)
process = start()
one = [fathom.memory_usage(process.pid), fathom.memory_usage(str(process.pid), max_usage=True)]
nested = fathom.memory_usage(os.getpid(), multiprocess=True)
stream = io.StringIO()
assert fathom.memory_usage(-1, interval=.01, timeout=.03, stream=stream, multiprocess=True) is None
process.communicate()
result = values, several, one, nested, stream.getvalue().splitlines()
""")
    assert 100 < max(values) < 140 and len(values) > 3
    assert len(several) == 5
    assert len(one[0]) == 1 and isinstance(one[1], float)
    assert len(nested) == 1 and len(nested[0]) == 2
    assert [line.split()[0] for line in lines] == ["MEM", "CHLD"] * 3


def test_shares(inside):
    values = inside("""
import os
held = b"x" * (50 << 20)
result = [fathom.memory_usage(backend=name)[0] for name in ("psutil", "psutil_pss", "psutil_uss")]
""")
    assert values[0] + 1 > values[1] and values[1] + 1 > values[2] > 50  # one after the other


def test_what_is_refused(inside):
    assert inside("""
import warnings
said = []
for words in [dict(proc=99999999), dict(proc=(1, 2, 3, 4)), dict(backend="tracemalloc")]:
    try:
        fathom.memory_usage(**words)
    except Exception as error:
        said.append(type(error).__name__)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fathom.memory_usage(backend="mine")
result = said, str(caught[0].message)
""") == [["ProcessLookupError", "ValueError", "RuntimeError"], "mine can not be used, psutil used instead"]


def test_as_memory_profiler():
    """Side by side, in a Python that has it (FATHOM_IPYTHON names it, as for the magics)."""
    python = os.environ.get("FATHOM_IPYTHON") or sys.executable
    if plain(python, "-c", "import memory_profiler").returncode != 0:
        pytest.skip(f"no memory_profiler in {python}")
    done = plain(python, "-c", HOLD + """
import fathom, memory_profiler
def shape(value):
    if isinstance(value, (list, tuple)):
        inner = [shape(v) for v in value]
        return type(value).__name__, inner[0] if isinstance(value, list) else inner
    return type(value).__name__
hold(60, 0)
for words in [{}, dict(max_usage=True), dict(retval=True), dict(timestamps=True), dict(max_usage=True, retval=True),
              dict(timestamps=True, max_usage=True), dict(timestamps=True, retval=True), dict(backend="psutil_pss")]:
    theirs, ours = [module.memory_usage((hold, (60,)), interval=.05, **words) for module in (memory_profiler, fathom)]
    assert shape(theirs) == shape(ours), (words, theirs, ours)
    highest = [v if isinstance(v, float) else None for v in (theirs, ours)]
    if None not in highest:
        assert abs(highest[0] - highest[1]) < 2, highest
""", env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
