"""Files that are written while a program runs with `--trace --window`: what they have of it, compared with the program's own log."""

from __future__ import annotations

import json
import os
import subprocess

import launch
import recordings
from conftest import PACKAGE

WINDOW_NS = 200_000_000

# One thread is silent for longer than the window, one calls deep, others begin and end. When the file is wanted, all stand still until it is
# there: `log` has [name, thread, since when it was open for sure, until when or null].
PROGRAM = """
import json, os, signal, sys, threading, time
log, hold, go, quit = [], threading.Event(), threading.Event(), threading.Event()
def opened(name):
    row = [name, threading.get_native_id(), time.monotonic_ns(), None]
    log.append(row)
    return row
def closed(row): row[3] = time.monotonic_ns()
class Wanted(Exception): pass
def early(): pass
def silent_outer():
    row = opened("silent_outer"); silent_inner(); closed(row)
def silent_inner():
    row = opened("silent_inner"); quit.wait(); closed(row)
def diver():
    row = opened("diver")
    while not hold.is_set(): dive(20)
    quit.wait()
    closed(row)
def dive(n):
    row = opened("dive")
    if n: dive(n - 1)
    else: time.sleep(0.005)
    closed(row)
def short():
    row = opened("short"); early_or_late(); closed(row)
def early_or_late():
    row = opened("early_or_late"); time.sleep(0.002); closed(row)
def work():
    row = opened("work")
    thread = threading.Thread(target=short); thread.start(); thread.join()
    closed(row)
def want_file():
    if sys.argv[2] == "signal":
        os.kill(os.getppid(), signal.SIGUSR1)
    else:
        try: raise Wanted
        except Wanted: pass
def main():
    row = opened("main")
    for _ in range(1000): early()
    threads = [threading.Thread(target=f) for f in (silent_outer, diver)]
    for thread in threads: thread.start()
    end = time.monotonic_ns() + 3 * WINDOW
    while time.monotonic_ns() < end: work()
    hold.set()
    before, wanted = os.path.exists(sys.argv[1]) and os.stat(sys.argv[1]).st_ino, time.monotonic_ns()
    want_file()
    while not os.path.exists(sys.argv[1]) or os.stat(sys.argv[1]).st_ino == before:
        assert time.monotonic_ns() < wanted + 60_000_000_000, "no file"
        time.sleep(0.005)
    os.link(sys.argv[1], "middle.fathom")
    with open("log", "w") as out: json.dump({"wanted": wanted, "there": time.monotonic_ns(), "log": log}, out)
    closed(row)
try: main()
finally: quit.set()
""".replace("WINDOW", str(WINDOW_NS))


def spans_of(path):
    """[[name, thread, begin, end, words]] on CLOCK_MONOTONIC, and when the timeline begins."""
    output = path.with_suffix(".chrome.json")
    done = launch.fathom("convert", str(path), "-o", str(output))
    assert done.returncode == 0, done.stderr
    data = json.loads(output.read_text())
    base = int(data["otherData"]["monotonic_ns"])
    open_spans, spans = {}, []
    for event in data["traceEvents"]:
        stack = open_spans.setdefault(event["tid"], [])
        if event["ph"] == "B":
            stack.append([event["name"].split(" (")[0], event["tid"], base + round(event["ts"] * 1000), None, set(event.get("args", ()))])
            spans.append(stack[-1])
        elif event["ph"] == "E":
            span = stack.pop()
            span[3] = base + round(event["ts"] * 1000)
            span[4] |= set(event.get("args", ()))
    return base, spans


def take(tmp_path, python, how):
    (tmp_path / "app.py").write_text(PROGRAM)
    options, name = {"signal": (["--flush-signal", "USR1"], "app.fathom"), "keep": (["--keep-on", "exception=Wanted"], "app-kept-1.fathom")}[how]
    env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
    done = launch.run("--window", f"{WINDOW_NS // 1_000_000}ms", *options, "app.py", name, how, python=python, output=tmp_path / "app.fathom",
                      collectors=("--trace",), cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    return tmp_path / "middle.fathom", json.loads((tmp_path / "log").read_text())


def check(path, known):
    """The window before it was written, all of it and nothing else."""
    kinds = {note["kind"]: note["text"] for note in recordings.report(path)["notes"]}
    assert "damaged" not in kinds and "lost" not in kinds
    assert "timeline and tables have the last 0.2 s" in kinds["window"]
    base, spans = spans_of(path)
    end = max(span[3] for span in spans)
    assert known["wanted"] <= end <= known["there"]
    assert known["wanted"] - WINDOW_NS <= base <= known["there"] - WINDOW_NS
    near = 20_000_000  # of a call that is so near to an edge, both is right
    names = {name for name, *_ in known["log"]}
    for name in names:
        logged = [(thread, since, until or end) for one, thread, since, until in known["log"] if one == name]
        sure = [row for row in logged if row[2] > base + near and row[1] < end]
        may = [row for row in logged if row[2] > base - near and row[1] <= known["there"]]
        seen = [span for span in spans if span[0] == name]
        assert len(sure) <= len(seen) <= len(may), name
    for name in ("main", "silent_outer", "silent_inner", "diver"):
        (_, _, begin, until, words), = [span for span in spans if span[0] == name]
        assert (begin, until, words) == (base, end, {"began before", "still open"}), name
    assert "early" not in {span[0] for span in spans}
    for span in spans:
        assert ("began before" in span[4]) == (span[2] == base), span
    table = recordings.functions(path)
    for name in names:
        began = sum(span[0] == name and "began before" not in span[4] for span in spans)
        assert sum(row["calls"] for row in table[name]) == began, name


def test_a_file_by_signal(python, tmp_path):
    path, known = take(tmp_path, python, "signal")
    check(path, known)
    assert recordings.one(tmp_path / "app.fathom", "early")["calls"] == 1000  # the run's own recording has the whole
    shown = subprocess.run([launch.FATHOM, "report", str(path), "--slowest", "silent_inner"], capture_output=True, text=True,
                           timeout=launch.TIMEOUT)
    assert "began before, still open" in shown.stdout


def test_a_file_by_itself(python, tmp_path):
    check(*take(tmp_path, python, "keep"))
