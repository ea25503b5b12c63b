"""Processor time of regions, between what the program's own clock of the thread says inside and around them. A visit is exact within 50 µs at
its begin and at its end."""

import csv
import io
import json
import subprocess

import pytest

import recordings
from launch import FATHOM, own_run_folders  # noqa: F401 (a fixture)

EACH = 50_000

PROGRAM = """
    import fathom, json, threading, time
    from time import thread_time_ns as cpu
    inside, around, visits = {}, {}, {}
    def spin(ms):
        end = cpu() + ms * 1_000_000
        while cpu() < end: pass
    def measured(name, work):
        a = cpu()
        with fathom.region(name):
            b = cpu()
            work()
            c = cpu()
        d = cpu()
        inside[name] = inside.get(name, 0) + c - b
        around[name] = around.get(name, 0) + d - a
        visits[name] = visits.get(name, 0) + 1
    def main():
        measured("busy", lambda: spin(60))
        measured("asleep", lambda: time.sleep(0.1))
        for i in range(20):
            measured("both", lambda: (spin(2), time.sleep(0.003)))
        threads = [threading.Thread(target=measured, args=(f"thread {n}", lambda: spin(30))) for n in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for i in range(20_000):
            measured("short", lambda: None)
    def steps():
        with fathom.region("generator"):
            for i in range(3):
                spin(10)
                yield
    def generate():
        a = cpu()
        others = 0
        for item in steps():
            b = cpu()
            spin(20)
            others += cpu() - b
        around["generator"] = cpu() - a - others
        inside["generator"] = 30_000_000
        visits["generator"] = 4  # times that it ran
    main()
    generate()
    token = fathom.region_begin("token")
    fathom.region_end(token)
    print(json.dumps([inside, around, visits]))
    """


@pytest.mark.parametrize("options", [["--calls"], ["--lines"], ["--memory"], ["--trace"], ["--sample"]], ids=lambda o: o[0])
def test_cpu_is_that_of_the_thread(record, options):
    path = record(PROGRAM, *options)
    inside, around, visits = json.loads(record.stdout)
    rows = {row["name"]: row for row in recordings.report(path, "--regions")["regions"]}
    assert "cpu_ns" not in rows["token"]
    for name, low in inside.items():
        row = rows[name]
        assert low - EACH * visits[name] <= row["cpu_ns"] <= around[name] + EACH * visits[name], name
        assert 0 < row["cpu_ns"] <= row["total_ns"]
    # A tenth of a second asleep is none of a processor, and thousands of short visits are not lost between two readings.
    assert rows["asleep"]["cpu_ns"] < 50_000_000 < 100_000_000 <= rows["asleep"]["total_ns"]
    assert rows["short"]["cpu_ns"] >= inside["short"] / 2
    assert rows["both"]["cpu_ns"] >= 38_000_000 and rows["both"]["total_ns"] >= 100_000_000


def test_tables_have_it(record):
    path = record("""
        import fathom, time
        with fathom.region("one"):
            end = time.thread_time() + 0.02
            while time.thread_time() < end: pass
        fathom.region_end(fathom.region_begin("token"))
        """, "--calls")
    ((one, token),) = [recordings.report(path, "--regions")["regions"]]
    text = subprocess.run([FATHOM, "report", "--regions", path], capture_output=True, text=True, check=True).stdout
    head, first, second = text.splitlines()[-3:]
    assert head.split() == ["time", "cpu", "entered", "longest", "region"]
    assert len(first.split()) == len(second.split()) + 2  # which has no number and no unit there
    rows = list(csv.DictReader(io.StringIO(subprocess.run([FATHOM, "report", "--regions", "--csv", path], capture_output=True, text=True,
                                                          check=True).stdout)))
    assert float(rows[0]["cpu_seconds"]) == pytest.approx(one["cpu_ns"] / 1e9, abs=1e-9) and rows[1]["cpu_seconds"] == ""
    assert one["cpu_ns"] >= 20_000_000 - 2 * EACH
    merged = path.with_name("merged.fathom")
    subprocess.run([FATHOM, "merge", "-o", merged, path, path], check=True, capture_output=True)
    assert recordings.report(merged, "--regions")["regions"][0]["cpu_ns"] == 2 * one["cpu_ns"]
