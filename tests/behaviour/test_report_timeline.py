"""Reports of the timeline of a traced run: the longest calls and their distribution, phases, and any report of a
stretch of time, with answers that follow from the program."""

from __future__ import annotations

import csv
import io
import json
import os

import pytest

import launch
import pythons
import recordings

CALLS = launch.program("traced_calls.py")
STEP = 0.05


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    path = tmp_path_factory.mktemp("traced") / "o.fathom"
    done = launch.run(CALLS, str(STEP), output=path, collectors=("--trace",))
    assert (done.returncode, done.stderr) == (0, ""), done
    return path


def slowest(path, name, *words):
    return recordings.report(path, "--slowest", name, *words)


def limited(path, name, n):
    done = launch.fathom("report", path, "--slowest", name, "--json", "--limit", str(n))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_longest_calls(traced):
    found = slowest(traced, "fetch")
    assert found["calls"] == 4
    assert sorted(call["thread"] for call in found["slowest"]) == ["MainThread"] * 3 + ["other"]
    assert {call["name"] for call in found["slowest"]} == {"fetch"}
    took = [call["ns"] for call in found["slowest"]]
    assert took == sorted(took, reverse=True) and len(took) == 4
    for ns, times in zip(took, (4, 3, 2, 1)):
        assert ns > times * STEP * 0.99e9  # who sleeps may sleep longer
    assert found["max_ns"] == took[0] and found["min_ns"] == took[-1] and found["total_ns"] == sum(took)
    assert sum(bar["calls"] for bar in found["distribution"]) == 4
    assert all(call["end_ns"] - call["begin_ns"] == call["ns"] for call in found["slowest"])


def test_as_many_as_asked_for_and_several_functions(traced):
    assert len(limited(traced, "fetch", 2)["slowest"]) == 2
    both = slowest(traced, "[fq]*c*")
    assert {call["name"] for call in both["slowest"]} == {"fetch", "quick"}
    assert both["calls"] == 104


TASKS = """
import asyncio, time
async def short():
    await asyncio.sleep(0)
async def long(n):
    await asyncio.sleep(n * {step})
async def busy():
    time.sleep({step})
async def main():
    tasks = [asyncio.create_task(long(n), name="long %d" % n) for n in (1, 3, 2)]
    tasks += [asyncio.create_task(short()) for _ in range(20)]
    tasks.append(asyncio.create_task(busy()))
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


def test_whole_tasks(tmp_path):
    newest = list(pythons.interpreters().values())[-1]
    path = tmp_path / "o.fathom"
    done = launch.run("-c", TASKS.format(step=STEP), output=path, collectors=("--trace",), python=newest)
    assert (done.returncode, done.stderr) == (0, "")
    found = recordings.report(path, "--tasks", "--limit", "1000")
    of = {}
    for task in found["tasks"]:
        of.setdefault(task.get("name"), []).append(task)
    took = [task["took_ns"] for task in found["tasks"]]
    assert took == sorted(took, reverse=True) and all(task["done"] for task in found["tasks"])
    assert {name: len(of[name]) for name in ("main", "long", "short", "busy")} == {"main": 1, "long": 3, "short": 20, "busy": 1}
    assert [task["task"] for task in of["long"]] == ["long 3", "long 2", "long 1"]
    for n, task in zip((3, 2, 1), of["long"]):  # made, one step, a sleep, another step
        assert task["steps"] == 2 and task["took_ns"] > n * STEP * 0.99e9 and task["ran_ns"] < task["took_ns"] / 2
        assert task["made_by"] == of["main"][0]["number"]
    busy, = of["busy"]
    assert busy["steps"] == 1 and busy["ran_ns"] == busy["longest_step_ns"] > STEP * 0.99e9
    assert [task["task"] for task in recordings.report(path, "--tasks=long", "--limit", "2")["tasks"]] == ["long 3", "long 2"]
    rows = list(csv.DictReader(io.StringIO(launch.fathom("report", path, "--tasks=long", "--csv").stdout)))
    assert [row["task"] for row in rows] == ["long 3", "long 2", "long 1"] and rows[0]["steps"] == "2"
    table = launch.fathom("report", path, "--tasks").stdout
    assert "   20 " in table and "short" in table and "long 3  long" in table


ENDINGS = """
import asyncio
class Late(asyncio.CancelledError): pass
async def returns(): await asyncio.sleep(0)
async def raises(): raise ValueError
async def waits(): await asyncio.sleep(1000)
async def inner(): await waits()
async def throws():
    raise Late
async def main():
    tasks = {task.__name__: asyncio.create_task(task()) for task in (returns, raises, inner, throws)}
    tasks["early"] = asyncio.create_task(waits())
    tasks["early"].cancel()
    await asyncio.sleep(0)
    tasks["inner"].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    left = asyncio.create_task(open_())
    await asyncio.sleep(0)
    print(tasks["returns"].result(), type(tasks["raises"].exception()).__name__, *[tasks[name].cancelled() for name in ("inner", "throws", "early")], flush=True)
    import os
    os._exit(0)
async def open_(): await asyncio.sleep(1000)
asyncio.run(main())
"""


@pytest.mark.parametrize("options", [(), ("--no-c-calls",)], ids=" ".join)
def test_how_tasks_end(python, options, tmp_path):
    """By a result, an exception, cancelled in the middle or before its first step, or not at all. The program says the same."""
    path = tmp_path / "o.fathom"
    done = launch.run(*options, "-c", ENDINGS, output=path, collectors=("--trace",), python=python)
    assert (done.returncode, done.stdout.split()) == (0, ["None", "ValueError", "True", "True", "True"])
    found = {task["name"]: task["ended"] for task in recordings.report(path, "--tasks", "--limit", "1000")["tasks"]}
    raised, cancelled = "raised", "cancelled"
    if "3.11" in os.path.basename(os.path.realpath(python)) and not options:
        raised = cancelled = "raised or cancelled"
    assert found == {"returns": "done", "raises": raised, "inner": cancelled, "throws": cancelled, "waits": cancelled,
                     "open_": "open", "main": "open"}
    rows = csv.DictReader(io.StringIO(launch.fathom("report", path, "--tasks", "--csv").stdout))
    assert {row["function"].rsplit(".")[-1]: row["ended"] for row in rows} == found
    table = launch.fathom("report", path, "--tasks").stdout
    assert all(f" {word} " in table for word in found.values())


def test_no_tasks(traced):
    assert "no tasks of asyncio in this time" in launch.fathom("report", traced, "--tasks").stdout
    assert recordings.report(traced, "--tasks")["tasks"] == []


def test_sentences_for_one_and_many(traced):
    one = launch.fathom("report", traced, "--slowest", "second").stdout
    assert "\n1 call, " in one and "half of them" not in one
    many = launch.fathom("report", traced, "--slowest", "quick").stdout
    assert "\n100 calls, " in many and "half of them up to about" in many
    assert "█" in many
    none = launch.fathom("report", traced, "--slowest", "nosuch")
    assert (none.returncode, none.stdout) == (12, "")
    assert none.stderr == 'fathom report: there is no function "nosuch" in the recording\n'


def test_no_call_in_a_stretch(traced):
    [call] = slowest(traced, "second")["slowest"]
    text = launch.fathom("report", traced, "--slowest", "second", "--to", f"{call['begin_ns'] / 2e9}s").stdout
    assert "no call of it in this time\n" in text or "0 calls" in text


def test_phases_follow_one_another(traced):
    lanes = {lane["thread"]: lane for lane in recordings.report(traced, "--timeline")["lanes"]}
    assert {lane["kind"] for lane in lanes.values()} == {"traced"}
    names = [phase["name"] for phase in lanes["MainThread"]["phases"]]
    assert names.index("first") < names.index("second")
    assert "state" not in lanes["MainThread"]["phases"][0]
    text = launch.fathom("report", traced, "--timeline", "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["thread"] for row in rows} == {"MainThread", "other"}
    assert all(float(row["begin_s"]) < float(row["end_s"]) for row in rows)


def calls_and_times(functions):
    return {(row["qualname"], row["file"], row["line"]): (row["calls"], row["self_ns"]) for row in functions}


def test_stretches_add_up(traced):
    """Calls count where they begin; so those of stretches are those of the whole."""
    length = recordings.report(traced, "--timeline")["timeline"]["length_ns"]
    cuts = [0, length // 5, length // 2, length * 4 // 5, length]
    sums: dict = {}
    for begin, end in zip(cuts, cuts[1:]):
        part = recordings.report(traced, "--from", f"{begin / 1e9:.9f}s", "--to", f"{end / 1e9:.9f}s")
        for key, (calls, _) in calls_and_times(part["functions"]).items():
            sums[key] = sums.get(key, 0) + calls
    whole = {key: calls for key, (calls, _) in calls_and_times(recordings.report(traced)["functions"]).items() if calls}
    assert {key: sums.get(key) for key in whole if key[0] in ("quick", "fetch", "first", "second", "work", "other")} == {
        key: calls for key, calls in whole.items() if key[0] in ("quick", "fetch", "first", "second", "work", "other")}


def test_a_stretch_has_what_was_open_in_it(traced):
    [call] = slowest(traced, "second")["slowest"]
    part = recordings.report(traced, "--from", f"{call['begin_ns'] / 1e9:.9f}s", "--to", f"{call['end_ns'] / 1e9:.9f}s")
    names = {row["name"]: row for row in part["functions"]}
    assert names["second"]["calls"] == 1 and names["fetch"]["calls"] == 1
    assert "quick" not in names and names["work"]["calls"] == 0
    text = launch.fathom("report", traced, "--from", "0%", "--to", "100%", "--tree").stdout
    assert "\nonly 0.000 s to " in text


def test_who_was_there_in_a_stretch(traced):
    """The wall time of threads and processes is that of the stretch: all of it where they were there all along."""
    [call] = slowest(traced, "second")["slowest"]
    words = ("--from", f"{call['begin_ns'] / 1e9:.9f}s", "--to", f"{call['end_ns'] / 1e9:.9f}s")
    whole = {row["name"]: row for row in recordings.report(traced, "--threads")["threads"]}
    part = {row["name"]: row for row in recordings.report(traced, "--threads", *words)["threads"]}
    assert part["MainThread"]["wall_ns"] == call["ns"] < whole["MainThread"]["wall_ns"]
    assert 0 <= part["other"]["wall_ns"] <= call["ns"]
    [process] = recordings.report(traced, "--processes", *words)["processes"]
    assert process["wall_ns"] == call["ns"]
    rows = list(csv.DictReader(io.StringIO(launch.fathom("report", traced, "--threads", "--csv", *words).stdout)))
    assert {row["name"]: round(float(row["wall_s"]) * 1e9) for row in rows} == {name: row["wall_ns"] for name, row in part.items()}
    length = recordings.report(traced, "--timeline")["timeline"]["length_ns"]
    both = [recordings.report(traced, "--threads", *cut)["threads"] for cut in (("--to", "50%"), ("--from", "50%"))]
    for half in zip(*both):
        assert sum(row["wall_ns"] for row in half) <= min(length, whole[half[0]["name"]]["wall_ns"])


TURNS = """
import json, threading, time

away = {}
ping, pong = threading.Semaphore(0), threading.Semaphore(1)

def plays(mine, other):
    for _ in range(50):
        mine.acquire()
        other.release()

def nothing():
    pass

def spins():
    begin, cpu = time.perf_counter_ns(), time.thread_time_ns()
    while time.perf_counter_ns() - begin < 300_000_000:
        nothing()
    away[threading.current_thread().name] = time.perf_counter_ns() - begin - (time.thread_time_ns() - cpu)

for names, work in ((("ping", "pong"), [(plays, (ping, pong)), (plays, (pong, ping))]), (("one", "two"), [(spins, ())] * 2)):
    threads = [threading.Thread(target=f, args=args, name=name) for name, (f, args) in zip(names, work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(json.dumps(away))
"""


@pytest.mark.parametrize("version", pythons.interpreters())
def test_turns_of_the_interpreter(tmp_path, version):
    """Who waits for a lock waits in a call of C, and gets the interpreter each time; who computes beside another waits for it, by
    no more than the time in which it was not on a processor, as it measures itself."""
    path = tmp_path / "o.fathom"
    done = launch.run("-c", TURNS, output=path, collectors=("--trace",), python=pythons.interpreters()[version])
    assert (done.returncode, done.stderr) == (0, "")
    away = json.loads(done.stdout)
    found = recordings.report(path, "--gil")
    rows = {row["name"]: row for row in found["threads"]}
    assert rows.keys() == {"MainThread", "ping", "pong", "one", "two"} and all(row["known"] for row in rows.values())
    most = [row["most_ns"] for row in found["threads"]]
    assert most == sorted(most, reverse=True)
    for name in ("ping", "pong"):
        assert rows[name]["turns"] >= 49
    for name in ("one", "two"):
        row = rows[name]
        assert row["turns"] >= row["waits"] > 0 and 0 < row["least_ns"] <= row["most_ns"] <= 400_000_000 + away[name]
        assert row["least_ns"] <= away[name] * 1.05 and row["longest_ns"] <= row["most_ns"]
    text = launch.fathom("report", path, "--gil", "--csv").stdout
    table = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {name: round(float(row["most_s"]) * 1e9) for name, row in table.items()} == {name: row["most_ns"] for name, row in rows.items()}
    lines = launch.fathom("report", path, "--gil").stdout.splitlines()
    assert sum(line.endswith(tuple(rows)) for line in lines) == 5
    # Before the wait was over it was none.
    longest = max((rows["one"], rows["two"]), key=lambda row: row["longest_ns"])
    until = (longest["longest_at_ns"] + longest["longest_ns"] / 2) / 1e9
    early = {row["name"]: row for row in recordings.report(path, "--gil", "--to", f"{until:.9f}s")["threads"]}
    assert early[longest["name"]]["waits"] < longest["waits"]
    only = recordings.report(path, "--gil", "--thread", str(rows["one"]["thread"]))["threads"]
    assert [row["name"] for row in only] == ["one"]


def test_turns_without_calls_of_c(tmp_path):
    path = tmp_path / "o.fathom"
    done = launch.run("-c", "pass", output=path, collectors=("--trace", "--no-c-calls"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is known of processes without C calls" in launch.fathom("report", path, "--gil").stdout
    [row] = recordings.report(path, "--gil")["threads"]
    assert (row["known"], row["turns"]) == (False, 0)


ALIKE = """
import time

def leaf(n):
    return n

def request(n):
    leaf(n)
    if n % 5 == 4:
        leaf(n)
    time.sleep(0.2 if n == 7 else 0.001)

for n in range(40):
    request(n)
"""


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alike")
    (folder / "requests.py").write_text(ALIKE)
    done = launch.run(folder / "requests.py", output=folder / "o.fathom", collectors=("--trace",))
    assert (done.returncode, done.stderr) == (0, ""), done
    return folder / "o.fathom"


def test_calls_that_did_the_same(alike):
    """Of 40 requests eight call leaf twice; one of the others sleeps for long, and by nothing else is it slow."""
    one, two = recordings.report(alike, "--alike", "request")["groups"]
    assert [one["calls"], two["calls"]] == [32, 8] and [one["spans"], two["spans"]] == [2, 3]
    assert one["max_ns"] == one["slowest"]["ns"] >= 200e6 > one["half_ns"]
    assert one["unlike_first"] == []
    [unlike] = two["unlike_first"]
    assert (unlike["name"], unlike["calls"], unlike["usual_calls"]) == ("leaf", 2, 1)
    most = one["slowest_differs"][0]
    assert most["name"] == "sleep" or "sleep" in most["name"]
    assert most["self_ns"] >= 200e6 > most["usual_self_ns"] > 200e6 / 32  # the average of 32, of which it is one
    assert one["total_ns"] >= 200e6 + 31 * 1e6 and one["min_ns"] >= 1e6


def test_alike_for_people_and_tables(alike):
    text = launch.fathom("report", alike, "--alike", "request").stdout
    assert "40 calls, in 2 groups that did the same" in text
    assert "leaf ×2 (×1)" in text and "sleep" in text
    rows = list(csv.DictReader(io.StringIO(launch.fathom("report", alike, "--alike", "request", "--csv").stdout)))
    assert [row["calls"] for row in rows] == ["32", "8"]
    none = launch.fathom("report", alike, "--alike", "request", "--from", "99.9%")
    assert "no call of it began and ended in this time" in none.stdout


def test_alike_needs_single_calls(tmp_path):
    path = tmp_path / "o.fathom"
    launch.run(CALLS, "0.05", output=path, collectors=("--sample",))
    done = launch.fathom("report", path, "--alike", "work")
    assert done.returncode != 0 and "fathom run --trace" in done.stderr


def test_merged_runs_stand_side_by_side(tmp_path, traced, alike):
    """One after the other on one clock, and it is said how sure that is."""
    both = tmp_path / "both.fathom"
    assert launch.fathom("merge", traced, alike, "-o", both).returncode == 0
    found = recordings.report(both, "--timeline")
    first, second = (recordings.report(path, "--timeline") for path in (traced, alike))
    assert (first["runs"], first["uncertain_ns"]) == (1, 0)
    assert found["runs"] == 2 and 1000 <= found["uncertain_ns"] < 1e9
    lanes = sorted(found["lanes"], key=lambda lane: lane["begin_ns"])
    assert len(lanes) == len(first["lanes"]) + len(second["lanes"])
    assert lanes[-1]["begin_ns"] > max(lane["end_ns"] for lane in lanes[:-1])  # it was recorded afterwards
    assert "2 runs side by side by the time of day, to within " in launch.fathom("report", both, "--timeline").stdout
