"""Regions (fathom.region): how often, how long, and what they did to the heap. Sizes are of bytes objects: 33 bytes more
than was asked for, in one block. What `with` itself takes and gives back is some hundred bytes, what asyncio does in a task some thousand: SLACK."""

import subprocess

import pytest

import recordings
from launch import FATHOM, own_run_folders  # noqa: F401 (a fixture)

SLACK = 10_000
MB = 1_000_000


def regions(path, *options):
    """{"outer/inner": row}"""
    rows = recordings.report(path, "--regions", *options)["regions"]
    table = {"/".join(row["path"]): row for row in rows}
    assert len(table) == len(rows)
    return table


def check(row, entered, *, peak, net, allocated=None):
    assert row["entered"] == entered
    assert row["peak_bytes"] == pytest.approx(peak, abs=SLACK)
    assert row["net_bytes"] == pytest.approx(net, abs=SLACK)
    assert row["allocated_bytes"] - row["freed_bytes"] == row["net_bytes"]
    if allocated is not None:
        assert row["allocated_bytes"] == pytest.approx(allocated, abs=SLACK * entered)


def test_each_region_has_its_own_peak(record):
    path = record("""
        import fathom, time
        with fathom.region("load"):
            a = bytes(10_000_000)
            b = bytes(5_000_000)
            del b
            with fathom.region("parse"):
                c = bytes(3_000_000)
            time.sleep(0.05)
        for i in range(3):
            with fathom.region("step"):
                x = bytes(1_000_000 * (i + 1))
                del x
        with fathom.region("drop"):
            del a
        """)
    rows = regions(path)
    assert list(rows) == ["load", "load/parse", "step", "drop"]
    check(rows["load"], 1, peak=15 * MB, net=13 * MB, allocated=18 * MB)
    check(rows["load/parse"], 1, peak=3 * MB, net=3 * MB, allocated=3 * MB)
    check(rows["step"], 3, peak=3 * MB, net=0, allocated=6 * MB)
    check(rows["drop"], 1, peak=0, net=-10 * MB, allocated=0)
    assert 50e6 <= rows["load"]["total_ns"] < 5e9
    assert rows["load/parse"]["total_ns"] < rows["load"]["total_ns"]
    assert rows["step"]["min_ns"] <= rows["step"]["max_ns"] <= rows["step"]["total_ns"]
    assert rows == regions(path, "--memory")


def test_regions_beside_lines(record):
    """Both have their own peak of one meter, and open and close in no common order."""
    path = record("""
        import fathom
        @profile
        def work():
            a = bytes(2_000_000); del a
            with fathom.region("one"):
                b = bytes(5_000_000); del b
                c = bytes(1_000_000)
            d = bytes(3_000_000)
        work()
        """)
    check(regions(path)["one"], 1, peak=5 * MB, net=1 * MB)
    lines = {row["line"]: row for function in recordings.report(path, "--lines")["functions"]
             for row in function["lines"]}
    assert lines[5]["transient_bytes"] == 2_000_033
    assert lines[7]["transient_bytes"] == 5_000_033
    assert lines[8]["transient_bytes"] == 1_000_033
    assert lines[9]["transient_bytes"] == 3_000_033


def test_recursion_counts_the_outermost(record):
    path = record("""
        import fathom
        @fathom.region("down")
        def down(n):
            x = bytes(1_000_000)
            with fathom.region("here"):
                if n:
                    down(n - 1)
        down(4)
        """)
    rows = regions(path)
    assert sorted(rows) == ["down", "down/here"]
    check(rows["down"], 5, peak=5 * MB, net=0, allocated=5 * MB)
    check(rows["down/here"], 5, peak=4 * MB, net=0, allocated=4 * MB)


def test_threads_have_their_own_peak(record):
    path = record("""
        import fathom, threading
        turn = threading.Barrier(3)
        def work(size):
            with fathom.region("work"):
                turn.wait()
                kept = bytes(size)
                turn.wait()
                del kept
        threads = [threading.Thread(target=work, args=(n * 1_000_000,)) for n in (1, 2, 4)]
        with fathom.region("main"):
            for t in threads: t.start()
            for t in threads: t.join()
        """)
    rows = regions(path)
    check(rows["work"], 3, peak=4 * MB, net=0, allocated=7 * MB)
    assert rows["main"]["allocated_bytes"] < MB


def test_one_region_in_many_short_threads(record):
    path = record("""
        import fathom, threading
        region = fathom.region("short")
        def work():
            with region:
                bytes(100_000)
        for i in range(400):
            t = threading.Thread(target=work); t.start(); t.join()
        """)
    row = regions(path)["short"]
    assert row["entered"] == 400 and row["peak_bytes"] == pytest.approx(100_033, abs=SLACK)
    assert row["allocated_bytes"] == pytest.approx(400 * 100_033, abs=400 * 200)


def test_a_generator_is_in_its_region_while_it_runs(record):
    path = record("""
        import fathom, time
        kept = []
        def numbers():
            with fathom.region("inside"):
                for i in range(3):
                    kept.append(bytes(1_000_000))
                    b = bytes(4_000_000); del b
                    yield i
        with fathom.region("around"):
            for n in numbers():
                other = bytes(7_000_000); del other
                time.sleep(0.01)
        """)
    rows = regions(path)
    check(rows["around/inside"], 1, peak=7 * MB, net=3 * MB, allocated=15 * MB)
    check(rows["around"], 1, peak=10 * MB, net=3 * MB, allocated=36 * MB)
    assert 30e6 <= rows["around/inside"]["suspended_ns"] < rows["around/inside"]["total_ns"]
    assert rows["around"]["suspended_ns"] == 0


def test_tasks_have_what_they_do_themselves(record):
    path = record("""
        import asyncio, fathom
        async def work(size, turns):
            with fathom.region(f"task {size}"):
                kept = bytes(size * 1_000_000)
                for i in range(turns):
                    await step(size)
                del kept
        async def step(size):
            with fathom.region("step"):
                b = bytes(size * 100_000)
                await asyncio.sleep(0.001)
                del b
        async def main():
            with fathom.region("main"):
                await asyncio.gather(work(1, 3), work(3, 2), work(5, 4))
        asyncio.run(main())
        """)
    rows = regions(path)
    check(rows["task 1"], 1, peak=1.1 * MB, net=0)
    check(rows["task 3"], 1, peak=3.3 * MB, net=0)
    check(rows["task 5"], 1, peak=5.5 * MB, net=0)
    check(rows["task 5/step"], 4, peak=0.5 * MB, net=0, allocated=2 * MB)
    assert rows["task 5"]["suspended_ns"] >= 4e6
    assert rows["main"]["peak_bytes"] < 100_000 and rows["main"]["entered"] == 1  # it only waits


def test_decorated_functions_of_all_kinds(record):
    path = record("""
        import asyncio, fathom
        @fathom.region("generator")
        def numbers(n):
            got = []
            for i in range(n):
                b = bytes(1_000_000)
                got.append((yield i))
                del b
            return got
        @fathom.region("coroutine")
        async def wait():
            b = bytes(2_000_000)
            await asyncio.sleep(0)
            return len(b)
        @fathom.region("async generator")
        async def items():
            try:
                while True:
                    b = bytes(3_000_000)
                    try:
                        sent = yield b[0]
                    except KeyError:
                        sent = "thrown"
                    print(sent)
                    del b
            finally:
                print("closed")
        def drive():
            g = numbers(2)
            assert next(g) == 0 and g.send("a") == 1
            other = bytes(9_000_000); del other
            try:
                g.send("b")
            except StopIteration as end:
                assert end.value == ["a", "b"]
        drive()
        async def main():
            assert await wait() == 2_000_000
            a = items()
            await a.asend(None)
            await a.asend("sent")
            await a.athrow(KeyError)
            other = bytes(9_000_000); del other
            await a.aclose()
        asyncio.run(main())
        print(numbers.__name__, wait.__qualname__)
        """)
    assert record.stdout == "sent\nthrown\nclosed\nnumbers wait\n"
    rows = regions(path)
    check(rows["generator"], 1, peak=1 * MB, net=0, allocated=2 * MB)
    check(rows["coroutine"], 1, peak=2 * MB, net=0)
    check(rows["async generator"], 1, peak=3 * MB, net=0, allocated=9 * MB)


def test_a_region_in_a_context_manager_is_its_users(record):
    path = record("""
        import asyncio, contextlib, fathom
        @contextlib.contextmanager
        def phase(name):
            with fathom.region(name):
                yield
        @contextlib.asynccontextmanager
        async def async_phase(name):
            with fathom.region(name):
                await asyncio.sleep(0)
                yield
        with phase("plain"):
            b = bytes(2_000_000); del b
        with contextlib.ExitStack() as stack:
            stack.enter_context(phase("stack"))
            b = bytes(3_000_000); del b
        async def one():
            with phase("task"):
                b = bytes(4_000_000)
                await asyncio.sleep(0.001)
                del b
            async with async_phase("async"):
                b = bytes(5_000_000)
                await asyncio.sleep(0.001)
                del b
        async def two():
            for i in range(4):
                other = bytes(8_000_000)
                await asyncio.sleep(0.001)
                del other
        async def main():
            await asyncio.gather(one(), two())
        asyncio.run(main())
        """)
    rows = regions(path)
    check(rows["plain"], 1, peak=2 * MB, net=0)
    check(rows["stack"], 1, peak=3 * MB, net=0)
    check(rows["task"], 1, peak=4 * MB, net=0)
    check(rows["async"], 1, peak=5 * MB, net=0)


def test_a_generator_that_another_thread_goes_on_with(record):
    path = record("""
        import fathom, threading
        def work():
            with fathom.region("moves"):
                a = bytes(1_000_000)
                yield
                b = bytes(2_000_000)
                yield
        g = work()
        next(g)
        other = bytes(5_000_000)
        t = threading.Thread(target=next, args=(g,)); t.start(); t.join()
        g.close()
        """)
    check(regions(path)["moves"], 1, peak=3 * MB, net=3 * MB)


def test_a_generator_that_is_left_waiting(record):
    path = record("""
        import fathom, os
        def work():
            with fathom.region("waits"):
                a = bytes(1_000_000)
                yield
        g = work()
        next(g)
        other = bytes(5_000_000)
        os._exit(0)
        """)
    row = regions(path)["waits"]
    check(row, 1, peak=1 * MB, net=1 * MB)
    assert row["open"] == 1 and 0 < row["suspended_ns"] < row["total_ns"]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)"])
def test_what_is_open_at_the_end_is_not_lost(record, end):
    path = record(f"""
        import fathom, os, signal, time
        with fathom.region("first"):
            a = bytes(2_000_000)
        with fathom.region("last"):
            b = bytes(7_000_000); del b
            with fathom.region("inner"):
                c = bytes(4_000_000)
                time.sleep(0.02)
                {end}
        """, status=-9 if "kill" in end else 3)
    rows = regions(path)
    check(rows["first"], 1, peak=2 * MB, net=2 * MB)
    check(rows["last"], 1, peak=7 * MB, net=4 * MB, allocated=11 * MB)
    check(rows["last/inner"], 1, peak=4 * MB, net=4 * MB)
    assert [row["open"] for row in rows.values()] == [0, 1, 1]
    assert rows["last"]["total_ns"] >= rows["last/inner"]["total_ns"] >= 20e6


def test_children_of_fork_have_their_own(record):
    path = record("""
        import fathom, os
        with fathom.region("both"):
            a = bytes(3_000_000)
            if os.fork() == 0:
                with fathom.region("child"):
                    b = bytes(5_000_000); del b
                os._exit(0)
            os.wait()
            with fathom.region("parent"):
                c = bytes(1_000_000)
        """)
    rows = regions(path)
    check(rows["both"], 1, peak=4 * MB, net=4 * MB)
    check(rows["both/parent"], 1, peak=1 * MB, net=1 * MB)
    check(rows["child"], 1, peak=5 * MB, net=0)


def test_exceptions_go_through(record):
    path = record("""
        import fathom
        try:
            with fathom.region("fails"):
                a = bytes(1_000_000)
                raise ValueError
        except ValueError as error:
            del error
            print("caught", flush=True)
        """)
    assert record.stdout == "caught\n"
    check(regions(path)["fails"], 1, peak=1 * MB, net=1 * MB)


@pytest.mark.parametrize("options", [("--calls",), ("--lines=mine",), ("--calls", "--sample"), ("--sample",)])
def test_without_memory_there_is_time(record, options):
    path = record("""
        import fathom, time
        @fathom.region("nap")
        def nap():
            time.sleep(0.01)
        for i in range(4):
            nap()
        """, *options)
    row = regions(path)["nap"]
    assert row["entered"] == 4 and 40e6 <= row["total_ns"] < 4e9 and "peak_bytes" not in row
    table = subprocess.run([FATHOM, "report", "--regions", path], capture_output=True, text=True).stdout
    assert table.splitlines()[-1].split()[-1] == "nap" and "peak" not in table


def test_more_names_than_are_kept(record):
    path = record("""
        import fathom
        for i in range(50_100):
            with fathom.region(f"request {i}"):
                pass
        """)
    table = recordings.report(path, "--regions")
    assert len(table["regions"]) == 50_001
    more = table["regions"][-1]
    assert more["name"] == "<more regions>" and more["entered"] == 100
    assert [note["count"] for note in table["notes"] if "regions" in note["text"]] == [100]


def test_names_of_all_kinds(record):
    names = ["", "a/b", "größe 🐍", "x" * 10_000, "two\nlines", "half \ud800"]
    path = record(f"""
        import fathom
        for name in {names!r}:
            with fathom.region(name) as r:
                assert r.name == name or "ud800" in ascii(name)
        """)
    found = [row["name"] for row in recordings.report(path, "--regions")["regions"]]
    assert found == ["", "a/b", "größe 🐍", "x" * 4096, "two\nlines", "half \\ud800"]


def test_tables(record):
    path = record("""
        import fathom
        with fathom.region("one"):
            with fathom.region("two"):
                a = bytes(3 << 20)
        """)
    for what in ("--memory=regions", "--regions"):
        table = subprocess.run([FATHOM, "report", what, path], capture_output=True, text=True)
        rows = table.stdout.splitlines()
        assert rows[-3].split() == ["peak", "net", "allocated", "freed", "time", "cpu", "entered", "longest", "region"]
        assert rows[-2].endswith("  one") and rows[-1].endswith("    two")
        assert rows[-1].startswith("3.00 MiB  3.00 MiB   3.00 MiB")
    csv = subprocess.run([FATHOM, "report", "--regions", "--csv", path], capture_output=True, text=True).stdout.splitlines()
    assert csv[0].split(",")[:3] == ["region", "entered", "open"] and csv[2].split(",")[:3] == ["one / two", "1", "0"]
    picture = subprocess.run([FATHOM, "plot", path], capture_output=True, text=True).stdout.splitlines()
    assert picture[-2].startswith("[ one") and picture[-1].startswith("  [ two")


def test_a_recording_without_regions_says_so(record):
    path = record("pass")
    done = subprocess.run([FATHOM, "report", "--regions", path], capture_output=True, text=True)
    assert done.returncode == 12 and "holds no regions" in done.stderr
    done = subprocess.run([FATHOM, "report", "--regions", "--thread", "1", path], capture_output=True, text=True)
    assert done.returncode == 2


def test_nothing_happens_without_a_recording(inside):
    said = inside("""
        def f(): return 1
        assert fathom.region("x")(f) is f
        with fathom.region("x") as r:
            pass
        result = [repr(r), r.name]
        for bad in (1, None, b"x"):
            try:
                fathom.region(bad)
            except TypeError:
                result.append("refused")
        try:
            fathom.region("x")(3)
        except TypeError as error:
            result.append(str(error))
        """)
    assert said == ["fathom.region('x')", "x", "refused", "refused", "refused", "region() decorates functions, not int"]


def test_tokens_end_anywhere_and_once(record):
    path = record("""
        import asyncio, fathom, threading, time
        first = fathom.region_begin("job", number=1)
        second = fathom.region_begin("job", number=2)
        with fathom.region("around"):
            t = threading.Thread(target=fathom.region_end, args=(first,)); t.start(); t.join()
            third = fathom.region_begin("inside")
        fathom.region_end(first)
        fathom.region_end(None)
        async def other():
            fathom.region_end(third)
        asyncio.run(other())
        try:
            fathom.region_end(3)
        except TypeError as error:
            print(error)
        """, "--calls")
    assert record.stdout == "region_end() takes what region_begin() gave, not int\n"
    rows = regions(path)
    assert {name: (row["entered"], row["open"]) for name, row in rows.items()} == {
        "job": (2, 1), "around": (1, 0), "inside": (1, 0)}
    assert rows["inside"]["total_ns"] > 0


def test_tokens_have_no_memory_of_their_own(record):
    path = record("""
        import fathom
        token = fathom.region_begin("job")
        with fathom.region("around"):
            a = bytes(1_000_000)
        fathom.region_end(token)
        left = fathom.region_begin("left open")
        b = bytes(1_000_000)
        """)
    rows = regions(path)
    check(rows["job"], 1, peak=0, net=0, allocated=0)
    check(rows["left open"], 1, peak=0, net=0, allocated=0)
    check(rows["around"], 1, peak=1 * MB, net=1 * MB)


def test_ways_to_enter(record):
    path = record("""
        import contextlib, fathom
        r = fathom.region("x")
        with r as same:
            assert same is r
        assert r.__enter__() is r and not r.__exit__(None, None, None)
        assert type(r).__enter__(r) is r and not type(r).__exit__(r, None, None, None)
        with contextlib.ExitStack() as stack:
            stack.enter_context(r)
        with fathom.region(name="y", key=1), fathom.region("z", key=[]):
            pass
        assert isinstance(r, contextlib.AbstractContextManager) and type(r) is fathom.region
        @r
        def f(a, *, b): return a, b
        assert f(1, b=2) == (1, 2) and f.__name__ == "f"
        @fathom.timed
        def g(): return 5
        assert g() == 5
        """, "--calls")
    assert {name: row["entered"] for name, row in regions(path).items()} == {"x": 5, "y": 1, "y/z": 1, "g": 1}


def test_what_is_no_region(inside):
    said = inside("""
        import json
        result = []
        r = fathom.region("x")
        for call in (lambda: fathom.region(), lambda: fathom.region(1), lambda: fathom.region("a", "b"),
                     lambda: fathom.region(key=1), lambda: r(1, 2), lambda: r(3), lambda: r(len, key=1),
                     lambda: type(r).__enter__(3), lambda: object.__new__(fathom.region),
                     lambda: fathom.region_begin(1), lambda: fathom.counter("x"), lambda: fathom.instant(b"x"),
                     lambda: fathom.timed(5)):
            try:
                call()
            except TypeError:
                result.append("refused")
        """)
    assert said == ["refused"] * 13


def test_closed_in_another_order_and_by_another_thread(record):
    path = record("""
        import fathom, threading
        a, b, c = (fathom.region(name) for name in "abc")
        a.__enter__(); b.__enter__(); a.__exit__(None, None, None); b.__exit__(None, None, None)
        c.__enter__()
        t = threading.Thread(target=c.__exit__, args=(None, None, None)); t.start(); t.join()
        b.__exit__(None, None, None)
        """, "--calls")
    assert {name: (row["entered"], row["open"]) for name, row in regions(path).items()} == {
        "a": (1, 0), "a/b": (1, 0), "c": (1, 1)}


def test_a_sampled_program_tells_of_its_regions(record):
    """Of all its processes, without a variable that it could see."""
    path = record("""
        import os, subprocess, sys
        def ours():
            with open("/proc/self/maps") as maps:
                return "/_agent." in maps.read()
        assert not ours()
        import fathom
        with fathom.region("name of it"):
            pass
        assert ours() and "FATHOM_RUN" not in os.environ and "LD_PRELOAD" not in os.environ
        if "child" not in sys.argv:
            subprocess.run([sys.executable, __file__, "child"], check=True)
            child = os.fork()
            if not child:
                with fathom.region("forked"):
                    os._exit(0)
            os.waitpid(child, 0)
        """, "--sample")
    rows = regions(path)
    assert {name: (row["entered"], row["open"]) for name, row in rows.items()} == {
        "name of it": (2, 0), "forked": (1, 1)}
