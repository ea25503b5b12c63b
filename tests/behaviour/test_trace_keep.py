"""`fathom run --trace --keep-on`: the flight recorder writes by itself when something happens that was waited for."""

from __future__ import annotations

import json
import os
import re
import sys

import pytest

import launch
import pythons
import recordings
from conftest import PACKAGE
from launch import own_run_folders  # noqa: F401 (fixture)

INTERPRETERS = pythons.interpreters()
NEWEST = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable

# Programs wait for files to appear: so each file is there before the program goes on.
HEAD = """
import glob, os, sys, threading, time
def await_kept(count):
    end = time.monotonic() + 60
    while time.monotonic() < end and not os.path.exists(f"app-kept-{count}.fathom"):
        time.sleep(0.005)
def before(): pass
def after(): pass
"""


def kept(folder):
    return sorted(path.name for path in folder.glob("*kept-*.fathom"))


def run(tmp_path, python, code, *options):
    (tmp_path / "app.py").write_text(HEAD + code)
    env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
    return launch.run(*options, "app.py", python=python, collectors=("--trace",), cwd=tmp_path, env=env)


def whys(done):
    """[(file or None, what happened)]"""
    found = re.findall(r"^fathom run: (?:kept (\S+): )?(.*) in process \d+, thread \d+, [\d.]+ s after the start(.*)$", done.stderr,
                       re.MULTILINE)
    return [(name or None, what) for name, what, _ in found]


def test_an_exception_of_a_kind(python, tmp_path):
    """Failed is what Missing is made from; ValueError is another. The file has what was before, the run all."""
    done = run(tmp_path, python, """
try: int("x")
except ValueError: pass
for _ in range(7): before()
class Failed(Exception): pass
class Missing(Failed): pass
try: raise Missing
except Missing: pass
await_kept(1)
for _ in range(5): after()
""", "--keep-on", "exception=Failed")
    assert done.returncode == 0, done.stderr
    assert kept(tmp_path) == ["app-kept-1.fathom"]
    assert whys(done) == [("app-kept-1.fathom", "Missing was raised")]
    first = tmp_path / "app-kept-1.fathom"
    assert recordings.one(first, "before")["calls"] == 7
    assert "after" not in recordings.functions(first)
    assert recordings.one(tmp_path / "app.fathom", "after")["calls"] == 5
    note, = [note for note in recordings.report(first)["notes"] if note["kind"] == "kept"]
    assert "Missing was raised" in note["text"]


def test_only_what_nobody_caught(python, tmp_path):
    """In a thread; what is caught is nothing, and neither is sys.exit()."""
    done = run(tmp_path, python, """
class Bad(RuntimeError): pass
def fail():
    try: raise ValueError
    except ValueError: pass
    raise Bad
def leave(): sys.exit(3)
for work in fail, leave:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    await_kept(1)
sys.exit(0)
""", "--keep-on", "uncaught")
    assert kept(tmp_path) == ["app-kept-1.fathom"], done.stderr
    assert whys(done) == [("app-kept-1.fathom", "Bad was not caught")]


def test_what_ends_the_program_is_in_its_recording(python, tmp_path):
    done = run(tmp_path, python, "raise KeyError('end')\n", "--keep-on", "uncaught")
    assert done.returncode == 1
    (name, what), = whys(done)
    assert what == "KeyError was not caught"
    assert [name] == kept(tmp_path) or (name is None and ": in app.fathom\n" in done.stderr)  # how soon it ended


def test_a_slow_function(python, tmp_path):
    """A call of 3 ms is none, one of 60 ms is."""
    done = run(tmp_path, python, """
class Work:
    def step(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end: before()
work = Work()
work.step(0)
work.step(0.06)
await_kept(1)
after()
""", "--keep-on", "slow=Work.step:50ms")
    assert kept(tmp_path) == ["app-kept-1.fathom"], done.stderr
    (name, what), = whys(done)
    took = float(re.fullmatch(r"Work\.step took ([\d.]+) ms", what).group(1)) if "ms" in what else 1000
    assert took >= 60
    assert recordings.one(tmp_path / name, "Work.step")["calls"] == 2
    assert "after" not in recordings.functions(tmp_path / name)


def test_a_slow_region(python, tmp_path):
    done = run(tmp_path, python, """
import fathom
for seconds in 0, 0.06:
    with fathom.region("phase"):
        time.sleep(seconds)
await_kept(1)
""", "--keep-on", "slow=pha*:50ms")
    assert kept(tmp_path) == ["app-kept-1.fathom"], done.stderr
    assert re.fullmatch(r"phase took [\d.]+ m?s", whys(done)[0][1])


def test_a_slow_region_of_a_task(python, tmp_path):
    """It waits most of its time: each of its stretches is short."""
    done = run(tmp_path, python, """
import asyncio, fathom
async def main(naps):
    with fathom.region("request"):
        for _ in range(naps): await asyncio.sleep(0.03)
asyncio.run(main(0))
asyncio.run(main(3))
await_kept(1)
""", "--keep-on", "slow=request:80ms")
    assert kept(tmp_path) == ["app-kept-1.fathom"], done.stderr
    assert whys(done)[0][1].startswith("request took ")


def test_no_more_files_than_wanted(tmp_path):
    """Each is written before the program goes on; the third and fourth find no file left."""
    done = run(tmp_path, NEWEST, """
class Bad(Exception): pass
for number in 1, 2, 3, 4:
    try: raise Bad
    except Bad: pass
    await_kept(min(number, 2))
    time.sleep(0.1)
""", "--window", "100ms", "--keep-on", "exception=Bad", "--keep-most", "2")
    assert kept(tmp_path) == ["app-kept-1.fathom", "app-kept-2.fathom"]
    assert [name for name, _ in whys(done)][:2] == kept(tmp_path)
    left = re.search(r"it happened (\d) more times", done.stderr)
    assert (int(left.group(1)) if left else 0) + whys(done)[2:].__len__() >= 1
    again = run(tmp_path, NEWEST, "try: raise OSError\nexcept OSError: await_kept(3)\n", "--keep-on", "exception", "-o", "app.fathom", "-f")
    assert kept(tmp_path) == [f"app-kept-{number}.fathom" for number in (1, 2, 3)], again.stderr


def test_the_window_has_what_is_open(tmp_path):
    """Calls that began long before the window are around what is in it."""
    done = run(tmp_path, NEWEST, """
class Bad(Exception): pass
def outer():
    for _ in range(20):
        for _ in range(1000): before()
        time.sleep(0.02)
    inner()
def inner():
    try: raise Bad
    except Bad: pass
    await_kept(1)
outer()
""", "--no-c-calls", "--window", "100ms", "--keep-on", "exception=Bad")
    assert kept(tmp_path) == ["app-kept-1.fathom"], done.stderr
    events = tmp_path / "kept.chrome.json"
    done = launch.fathom("convert", tmp_path / "app-kept-1.fathom", "-o", events)
    assert done.returncode == 0, done.stderr
    ends, around = [], []
    for event in json.loads(events.read_text())["traceEvents"]:
        if event["ph"] == "B":
            around.append(event["name"].split(" ")[0])
            if around[-1] == "await_kept":
                assert around == ["<module>", "outer", "inner", "await_kept"]
        elif event["ph"] == "E":
            ends.append(around.pop())
    assert around == [] and ends[-4:] == ["await_kept", "inner", "outer", "<module>"]
    notes = [note for note in recordings.report(tmp_path / "app-kept-1.fathom")["notes"] if note["kind"] in ("lost", "damaged")]
    assert notes == []


@pytest.mark.parametrize("words", [["--keep-on", "sometimes"], ["--keep-on", "slow=x"], ["--keep-on", "slow=x:3"], ["--keep-most", "2"]])
def test_bad_options(words, tmp_path):
    done = launch.fathom("run", "--trace", *words, "-c", "pass", cwd=tmp_path)
    assert done.returncode == 2
    assert "--keep-" in done.stderr


def test_it_goes_with_a_trace(tmp_path):
    done = launch.fathom("run", "--keep-on", "exception", "-c", "pass", cwd=tmp_path)
    assert done.returncode == 2 and "goes with --trace" in done.stderr
