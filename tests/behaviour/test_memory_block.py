"""fathom.memory(): the memory of a block, in a program that no launcher started."""

import json
import os
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest

import recordings
from conftest import FATHOM, PACKAGE
from launch import TIMEOUT, fathom

HEADER = 33  # of a bytes object, with the byte behind it

WORK = """
def load(count=50, size=10_000):
    out = [None] * count
    for i in range(count):
        out[i] = bytes(size)
    return out
"""


def rows(path):
    """{(function, line): row} of a recording."""
    report = recordings.report(path, "--memory", "--at", "all")
    return {(row["name"], row["line"]): row for row in report["functions"]}


def only(table, name, key="allocated_bytes"):
    """The row of a function that allocated most."""
    return max((row for (function, _), row in table.items() if function == name), key=lambda row: row[key])


def test_exact_bytes(inside, tmp_path):
    inside(WORK + """
before = load(30)
with fathom.memory("out.fathom"):
    kept = load()
    temporary = load(7, 100_000)
    del temporary, before
after = load(99)
result = None
""")
    row = only(rows(tmp_path / "out.fathom"), "load")
    assert row["allocated_bytes"] == 50 * (10_000 + HEADER) + 7 * (100_000 + HEADER)
    assert row["blocks"] == 57
    assert (row["leaked_bytes"], row["leaked_blocks"]) == (50 * (10_000 + HEADER), 50)
    assert (row["peak_bytes"], row["peak_blocks"]) == (row["allocated_bytes"], 57)


def test_the_recording_describes_the_program(inside, tmp_path):
    result = inside(WORK + """
before = [bytes(1000) for _ in range(20)]
with fathom.memory("out.fathom"):
    kept = load()
    del before[:]
result = sys.version.split()[0]
""")
    text = fathom("report", "--memory", str(tmp_path / "out.fathom")).stdout
    first, second = text.splitlines()[:2]
    assert first.endswith("inside.py") and second.startswith(f"Python {result} ")
    assert int(text.partition(" blocks from before")[0].split()[-1]) >= 20


def test_snapshots(inside):
    result = inside(WORK + """
def of(snapshot):
    return [list(row[3:5]) for row in snapshot.functions() if row.function == "load"]
with fathom.memory() as m:
    kept = load()
    middle = fathom.memory_snapshot()
    more = load(3)
result = [of(middle), of(m.snapshot), of(m.snapshot - middle), bool(fathom.memory_snapshot())]
""")
    each = 10_000 + HEADER
    table = 50 * 8  # of the list; that of three comes from a pool as well
    assert result[0] == [[50 * each + table, 51]]
    assert result[1][0][0] - result[0][0][0] == 3 * each + 3 * 8
    assert result[2][0][0] == 3 * each + 3 * 8
    assert result[3] is False


def test_many_times_in_one_process(inside, tmp_path):
    result = inside(WORK + """
sizes = []
kept = []
for i in range(30):
    with fathom.memory("out.fathom", overwrite=True) as m:
        kept.append(load(i + 1))
    load(1000)
    sizes.append([row.bytes for row in m.snapshot.lines() if row.function == "load" and row.bytes > 5000])
del kept
result = sizes
""")
    assert result == [[(i + 1) * (10_000 + HEADER)] for i in range(30)]
    assert only(rows(tmp_path / "out.fathom"), "load")["blocks"] == 30


def test_threads(inside, tmp_path):
    inside(WORK + """
import threading
def churn():
    for _ in range(200):
        load(20, 600)
early = [threading.Thread(target=churn) for _ in range(4)]
for t in early: t.start()
with fathom.memory("out.fathom"):
    threads = [threading.Thread(target=load, args=(40, 7000)) for _ in range(6)]
    for t in threads: t.start()
    for t in threads + early: t.join()
result = None
""")
    row = only(rows(tmp_path / "out.fathom"), "load")
    of_threads = 6 * 40 * (7000 + HEADER)
    assert row["allocated_bytes"] - of_threads >= 0
    assert (row["allocated_bytes"] - of_threads) % (600 + HEADER) == 0
    assert row["leaked_bytes"] == 0


# Blocks of PyMem_RawMalloc by threads without the GIL, while recordings begin and end.
RAW = """
import ctypes, threading
raw = ctypes.CDLL(None)  # without the GIL
raw.PyMem_RawMalloc.restype = raw.PyMem_RawRealloc.restype = ctypes.c_void_p
raw.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
raw.PyMem_RawRealloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
raw.PyMem_RawFree.argtypes = [ctypes.c_void_p]
"""


def test_blocks_of_the_raw_allocator(inside, tmp_path):
    inside(RAW + """
def work():
    a = raw.PyMem_RawMalloc(100_001)
    b = raw.PyMem_RawMalloc(50_001)
    c = raw.PyMem_RawRealloc(b, 70_001)
    raw.PyMem_RawFree(a)
    return c
early = raw.PyMem_RawMalloc(3000)
with fathom.memory("out.fathom"):
    work()
    raw.PyMem_RawFree(early)
result = None
""")
    table = rows(tmp_path / "out.fathom")
    mine = {line: row for (name, line), row in table.items() if name == "work"}
    by_size = sorted(row["allocated_bytes"] for row in mine.values())
    for expected in (100_001, 50_001, 70_001):
        assert any(expected <= size < expected + 500 for size in by_size), by_size
    assert sum(row["leaked_bytes"] for row in mine.values()) in range(70_001, 70_500)


def test_threads_without_the_gil_while_it_begins_and_ends(inside):
    assert inside(RAW + """
stop = False
def churn():
    while not stop:
        block = raw.PyMem_RawMalloc(300)
        block = raw.PyMem_RawRealloc(block, 3000)
        raw.PyMem_RawFree(block)
threads = [threading.Thread(target=churn) for _ in range(6)]
for t in threads: t.start()
def brief():
    for _ in range(3):
        raw.PyMem_RawFree(raw.PyMem_RawMalloc(100))
for i in range(100):
    t = threading.Thread(target=brief)
    t.start()
    with fathom.memory():
        bytes(5000)
    t.join()
stop = True
for t in threads: t.join()
result = "alive"
""") == "alive"


def test_an_exception(inside, tmp_path):
    result = inside(WORK + """
try:
    with fathom.memory("out.fathom"):
        kept = load(12)
        raise KeyError("mine")
except KeyError as error:
    result = str(error)
with fathom.memory():
    pass
""")
    assert result == "'mine'"
    assert only(rows(tmp_path / "out.fathom"), "load")["blocks"] == 12


def test_fork(inside, tmp_path):
    result = inside(WORK + """
import os
with fathom.memory("out.fathom"):
    kept = load(5)
    child = os.fork()
    if not child:
        with_more = load(11, 20_000)
    else:
        status = os.waitpid(child, 0)[1]
        end = "parent"
if not child:
    os._exit(7)
result = [os.waitstatus_to_exitcode(status), sorted(os.listdir("."))]
""")
    assert result == [7, ["inside.py", "out.fathom"]]
    report = recordings.report(tmp_path / "out.fathom", "--memory")
    assert report["memory"]["processes"] == 2
    assert "<inherited by fork>" in {row["name"] for row in report["functions"]}
    table = rows(tmp_path / "out.fathom")
    assert only(table, "load")["blocks"] == 5 + 11


def test_as_a_decorator(inside, tmp_path):
    inside(WORK + """
@fathom.memory("out.fathom", overwrite=True)
def work(count):
    return load(count)
work(3)
work(8)
result = None
""")
    assert only(rows(tmp_path / "out.fathom"), "load")["blocks"] == 8


def test_wrong_uses(inside, tmp_path):
    (tmp_path / "there.fathom").write_text("mine")
    result = inside("""
result = []
def attempt(call):
    try:
        call()
    except Exception as error:
        result.append(f"{type(error).__name__}: {error}")
def exists():
    with fathom.memory("there.fathom"):
        result.append("ran")
def nested():
    with fathom.memory():
        with fathom.memory():
            result.append("ran")
def nowhere():
    with fathom.memory("no/such/folder.fathom"):
        result.append("block")
attempt(exists)
attempt(nested)
attempt(nowhere)
with fathom.memory():
    result.append("again")
""")
    assert result[0] == "FileExistsError: fathom: there.fathom exists and is not overwritten"
    assert result[1] == "RuntimeError: fathom: memory is recorded already, by fathom.memory()"
    assert result[2] == "block" and result[3].startswith("OSError: fathom: ") and result[4] == "again"


def test_nothing_is_left(inside, tmp_path):
    folder = tmp_path / "stores"
    folder.mkdir()
    os.environ["FATHOM_TMPDIR"] = str(folder)
    try:
        assert inside(WORK + """
import os
with fathom.memory():
    during = os.listdir(os.environ["FATHOM_TMPDIR"])
    load()
def stores():
    return open("/proc/self/maps").read().count(".0.heap")
first = stores()
for _ in range(20):
    with fathom.memory():
        load()
result = [len(during), os.listdir(os.environ["FATHOM_TMPDIR"]), stores() - first]
""") == [1, [], 0]
    finally:
        del os.environ["FATHOM_TMPDIR"]


def test_a_killed_program_leaves_what_merge_reads(python, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text("import fathom, os, signal\n" + WORK + """
with fathom.memory("out.fathom"):
    kept = load(21)
    os.kill(os.getpid(), signal.SIGKILL)
""")
    done = subprocess.run([python, str(script)], cwd=tmp_path, timeout=TIMEOUT, check=False,
                          env=dict(os.environ, PYTHONPATH=PACKAGE, FATHOM_TMPDIR=str(tmp_path)))
    assert done.returncode == -signal.SIGKILL
    (folder,) = tmp_path.glob("fathom-*")
    merged = fathom("merge", str(folder), "-o", str(tmp_path / "merged.fathom"))
    assert merged.returncode == 0, merged.stderr
    assert only(rows(tmp_path / "merged.fathom"), "load")["leaked_blocks"] == 21


def test_under_run_memory_it_is_the_runs(python, tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import fathom\n" + WORK + """
with fathom.memory("mine.fathom") as m:
    kept = load()
print(bool(m.snapshot), flush=True)
""")
    done = subprocess.run([FATHOM, "run", "--memory", "-q", "-o", "run.fathom", "--python", python, str(script)],
                          cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert not (tmp_path / "mine.fathom").exists()
    assert only(rows(tmp_path / "run.fathom"), "load")["blocks"] == 50


@pytest.mark.parametrize("settings", [{"PYTHONMALLOC": "debug"}, {"PYTHONMALLOC": "malloc"}, {"PYTHONTRACEMALLOC": "5"}])
def test_other_allocators(python, tmp_path, settings):
    script = tmp_path / "program.py"
    script.write_text("import fathom, json, tracemalloc\n" + WORK + """
early = load(100)
for i in range(3):
    with fathom.memory("out.fathom", overwrite=True):
        kept = load(9)
        del early[-20:]
        if i == 1:
            tracemalloc.start()
    tracemalloc.stop()
load(500)
print("end")
""")
    done = subprocess.run([python, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT,
                          check=False, env=dict(os.environ, PYTHONPATH=PACKAGE, **settings))
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    row = only(rows(Path(tmp_path / "out.fathom")), "load")
    assert row["blocks"] == 9 and row["allocated_bytes"] == 9 * (10_000 + HEADER)


def test_top_shows_it(python, tmp_path):
    """A process that records late is found by `fathom top --memory`: it asks for a terminal, not for a recording."""
    code = "import fathom\nwith fathom.memory():\n    print('in', flush=True)\n    input()\nprint('out', flush=True)\ninput()\n"
    with subprocess.Popen([python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE)) as process:
        assert process.stdout.readline() == "in\n"
        assert fathom("top", "--memory", str(process.pid)).returncode == 2
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "out\n"
        assert fathom("top", "--memory", str(process.pid)).returncode == 18
        process.communicate("\n")
        assert process.returncode == 0
