"""A trace that the program starts and stops itself: `fathom run --trace --paused`, fathom.trace_start() and trace_stop()."""

from __future__ import annotations

import json
import os
import sys

import launch
import pythons
import recordings
from conftest import PACKAGE
from launch import own_run_folders  # noqa: F401 (fixture)

INTERPRETERS = pythons.interpreters()
NEWEST = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
ENV = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")


def run(tmp_path, python, code, *options):
    """The functions of the recording by name, and where each call lay: [(thread, names around it and its own)]."""
    (tmp_path / "app.py").write_text(code)
    output = tmp_path / "o.fathom"
    done = launch.run(*options, "app.py", python=python, collectors=("--trace",), cwd=tmp_path, env=ENV, output=output)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    notes = [note for note in recordings.report(output)["notes"] if note["kind"] in ("lost", "damaged")]
    assert notes == []
    events = tmp_path / "o.chrome.json"
    converted = launch.fathom("convert", output, "-f", "-o", events)
    assert converted.returncode == 0, converted.stderr
    stacks, places = {}, []
    for event in json.loads(events.read_text())["traceEvents"]:
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event["name"].split(" ")[0])
            places.append((event["tid"], tuple(stack)))
        elif event["ph"] == "E":
            stack.pop()
    assert not any(stacks.values())
    return done.stdout, {name: sum(row["calls"] for row in rows) for name, rows in recordings.functions(output).items()}, places


CODE = """
import fathom
def before(): pass
def inside(): pass
def between(): pass
def after(): pass
def start():
    print(fathom.trace_start(), fathom.trace_start())
    for _ in range(3): inside()
def outer():
    for _ in range(4): before()
    start()
    for _ in range(5): inside()
    print(fathom.trace_stop(), fathom.trace_stop())
    for _ in range(6): between()
    with fathom.tracing():
        for _ in range(7): inside()
        with fathom.tracing(): inside()
        inside()
    after()
outer()
after()
"""


def test_only_what_was_asked_for(python, tmp_path):
    """Calls that are open when it starts are around what follows; they are not counted as calls."""
    printed, calls, places = run(tmp_path, python, CODE, "--paused", "--no-c-calls")
    assert printed.split() == ["True", "False", "True", "False"]
    assert {name: calls.get(name, 0) for name in ("before", "inside", "between", "after", "outer", "start")} == {
        "before": 0, "inside": 17, "between": 0, "after": 0, "outer": 0, "start": 0}
    found = [names for _, names in places if names[-1] == "inside"]
    assert found == [("<module>", "outer", "start", "inside")] * 3 + [("<module>", "outer", "inside")] * 14
    assert len({thread for thread, _ in places}) == 1


def test_with_c_calls(python, tmp_path):
    _, calls, places = run(tmp_path, python, CODE, "--paused")
    assert calls["inside"] == 17 and "before" not in calls and "after" not in calls and "between" not in calls
    assert [names[:2] for _, names in places if names[-1] == "inside"] == [("<module>", "outer")] * 17


def test_without_paused_it_can_be_stopped(python, tmp_path):
    _, calls, _ = run(tmp_path, python, "import fathom\ndef a(): pass\ndef b(): pass\na()\nfathom.trace_stop()\nb()\n"
                                        "fathom.trace_start()\na()\n")
    assert calls["a"] == 2 and "b" not in calls


def test_time_that_was_left_out_is_nobodys(python, tmp_path):
    """Calls that are open when the trace goes on begin then, on every thread."""
    said, _, _ = run(tmp_path, python, """
import fathom, threading, time
clock = time.perf_counter_ns
ends = threading.Event()
def wait():
    while not ends.is_set():
        time.sleep(0.01)
def main():
    global stopped, started
    fathom.trace_stop()
    stopped = clock()
    time.sleep(0.5)
    started = clock()
    fathom.trace_start()
    time.sleep(0.05)
begun = clock()
thread = threading.Thread(target=wait)
thread.start()
main()
ended = clock()
ends.set()
thread.join()
print(started - stopped, stopped - begun + ended - started, clock() - begun)
""", "--no-c-calls")
    left_out, most, whole = map(int, said.split())
    output = tmp_path / "o.fathom"
    assert left_out > 490_000_000 and recordings.one(output, "main")["total_ns"] <= most * 1.01
    # The other thread is found open at its first event, which may be a sleep later.
    assert recordings.one(output, "wait")["total_ns"] <= (whole - left_out) * 1.01 + 5_000_000


DECORATED = """
import asyncio, fathom, threading
def inside(): pass
def outside(): pass
@fathom.tracing()
def recursive(n):
    \"\"\"Its own words.\"\"\"
    inside()
    if n: recursive(n - 1)
    inside()
    return n
@fathom.tracing()
def yields():
    inside()
    yield 1
    inside()
@fathom.tracing()
async def waits(first, second):
    inside()
    first.set()
    await second.wait()
    inside()
async def overlap():
    events = [asyncio.Event() for _ in range(3)]
    tasks = [asyncio.create_task(waits(*pair)) for pair in (events[:2], events[1:])]
    await events[1].wait()
    await asyncio.sleep(0.001)
    events[2].set()
    await asyncio.gather(*tasks)
outside()
print(recursive(3), recursive.__name__, recursive.__doc__)
outside()
list(yields())
outside()
asyncio.run(overlap())
outside()
@fathom.tracing()
def fails():
    inside()
    raise ValueError
try: fails()
except ValueError: outside()
try: fathom.tracing()(3)
except TypeError as e: print(e)
"""


def test_a_decorated_function(python, tmp_path):
    """It is traced while one of its calls is open, however that ends."""
    said, calls, _ = run(tmp_path, python, DECORATED, "--paused", "--no-c-calls")
    assert said.split("\n")[:2] == ["3 recursive Its own words.", "tracing() decorates functions, not int"]
    assert calls["inside"] == 4 * 2 + 2 + 2 * 2 + 1 and "outside" not in calls
    done = launch.plain(python, tmp_path / "app.py", env=ENV)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_without_a_trace_it_does_nothing(python, tmp_path):
    (tmp_path / "app.py").write_text(CODE)
    done = launch.plain(python, tmp_path / "app.py", env=ENV)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["False"] * 4, "")
    done = launch.run(tmp_path / "app.py", python=python, collectors=("--calls",), env=ENV, output=tmp_path / "o.fathom")
    assert (done.returncode, done.stdout.split()) == (0, ["False"] * 4)


def test_other_threads_generators_and_regions(python, tmp_path):
    """A thread waits in the middle of calls, a generator and a region when the trace starts."""
    code = """
import fathom, threading
started, go_on = threading.Event(), threading.Event()
def inside(): pass
def numbers():
    yield 1
    started.set()
    go_on.wait()
    inside()
    yield 2
def work():
    with fathom.region("phase"):
        for _ in numbers(): pass
        inside()
    inside()
thread = threading.Thread(target=work)
thread.start()
started.wait()
fathom.trace_start()
go_on.set()
thread.join()
fathom.trace_stop()
inside()
"""
    _, calls, places = run(tmp_path, python, code, "--paused", "--no-c-calls")
    assert calls["inside"] == 3
    found = [[name for name in names if name in ("run", "work", "numbers", "phase", "inside", "Thread.run")] for _, names in places
             if names[-1] == "inside"]
    assert [set(names) - {"phase"} for names in found] == [{"Thread.run", "work", "numbers", "inside"}] + [{"Thread.run", "work", "inside"}] * 2
    assert '"phase"' in (tmp_path / "o.chrome.json").read_text()


def test_tasks(python, tmp_path):
    code = """
import asyncio, fathom
async def step(): await asyncio.sleep(0)
async def worker():
    for _ in range(3): await step()
async def main():
    task = asyncio.create_task(worker())
    await asyncio.sleep(0)
    with fathom.tracing():
        await task
    await step()
asyncio.run(main())
"""
    run(tmp_path, python, code, "--paused", "--no-c-calls")
    step, = recordings.functions(tmp_path / "o.fathom")["step"]
    assert (step["calls"], step["resumes"]) == (2 + 3, 3)  # of three, the first began before


def test_children(tmp_path):
    """A child that is forked while it is traced goes on; one that is forked before starts by itself."""
    code = """
import fathom, os
def inside(): pass
def child(start):
    pid = os.fork()
    if pid == 0:
        if start: fathom.trace_start()
        inside()
        os._exit(0)
    os.waitpid(pid, 0)
child(True)
fathom.trace_start()
child(False)
inside()
"""
    _, calls, _ = run(tmp_path, NEWEST, code, "--paused", "--no-c-calls")
    assert calls["inside"] == 3


def test_a_killed_program_has_what_was_traced(tmp_path):
    code = "import fathom, os\ndef inside(): pass\nfathom.trace_start()\nfor _ in range(9): inside()\nos.kill(os.getpid(), 9)\n"
    (tmp_path / "app.py").write_text(code)
    done = launch.run("--paused", "app.py", python=NEWEST, collectors=("--trace",), cwd=tmp_path, env=ENV, output=tmp_path / "o.fathom")
    assert done.returncode == -9
    assert recordings.one(tmp_path / "o.fathom", "inside")["calls"] == 9


def test_paused_goes_with_a_trace(tmp_path):
    done = launch.fathom("run", "--paused", "-c", "pass", cwd=tmp_path)
    assert done.returncode == 2 and "--paused goes with --trace" in done.stderr
