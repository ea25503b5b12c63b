"""What lines do to the heap (`fathom run --memory` with @profile or --lines), the types of objects, and the limit on the
peak. Expected bytes come from sys.getsizeof in the program itself, or from what CPython documents: bytes have 33
more than was asked for, in one block."""

import subprocess

import pytest

import recordings
from launch import FATHOM, own_run_folders  # noqa: F401 (a fixture)


def lines(path):
    """{(function, line): row} of lines whose memory was recorded."""
    return {(function["name"], row["line"]): row for function in recordings.report(path, "--lines")["functions"]
            for row in function["lines"] if "allocated_bytes" in row}


def numbers(row):
    return row["allocated_bytes"], row["freed_bytes"], row["transient_bytes"]


def test_a_loop_has_the_sum_of_its_visits(record):
    """200 times 10 MB, freed at once: memory_profiler says +19 MiB here."""
    path = record("""
        @profile
        def work():
            for i in range(200):
                b = bytes(10_000_000)
                del b
        work()
        """)
    rows = lines(path)
    size = 10_000_033
    allocated, freed, above = numbers(rows["work", 5])
    assert allocated - allocated % 1000 == 200 * size - 200 * size % 1000 and freed < 20_000
    assert size <= above < size + 1000
    allocated, freed, above = numbers(rows["work", 6])
    assert (allocated, above) == (0, 0) and freed == 200 * size
    assert rows["work", 5]["heap_bytes"] - rows["work", 6]["heap_bytes"] == pytest.approx(size, abs=1000)


def test_recursion_counts_the_outermost_alone(record):
    path = record("""
        @profile
        def down(n):
            x = bytes(5_000_000)
            if n:
                y = down(n - 1)
            return x
        down(4)
        """)
    rows = lines(path)
    size = 5_000_033
    assert rows["down", 4]["allocated_bytes"] == 5 * size
    allocated, freed, above = numbers(rows["down", 6])
    assert allocated == pytest.approx(4 * size, abs=2000)      # four nested ones, seen from the first
    assert freed == pytest.approx(3 * size, abs=2000)          # all but the one that y is
    assert above == pytest.approx(4 * size, abs=2000)


def test_what_a_line_only_needs_for_a_while(record):
    path = record("""
        @profile
        def work():
            n = len(bytes(3_000_000)) + len(bytes(7_000_000))
            return n
        work()
        """)
    allocated, freed, above = numbers(lines(path)["work", 4])
    assert allocated == pytest.approx(10_000_066, abs=300) and freed == pytest.approx(10_000_066, abs=300)
    assert above == pytest.approx(7_000_033, abs=300)  # the two were never there at once


def test_generators_have_no_memory_of_others(record):
    path = record("""
        @profile
        def gen():
            for i in range(5):
                kept = bytes(1_000_000)
                yield i

        def main():
            for i in gen():
                other = bytes(9_000_000)
        main()
        """)
    rows = lines(path)
    assert rows["gen", 5]["allocated_bytes"] == pytest.approx(5 * 1_000_033, abs=500)
    assert max(row["allocated_bytes"] for row in rows.values()) < 6_000_000


def test_tasks_have_no_memory_of_others(record):
    """A line that awaits has what its own coroutine does, not what other tasks do meanwhile."""
    path = record("""
        import asyncio
        kept = []
        @profile
        async def one():
            a = bytes(1_000_000)
            await asyncio.sleep(0.01)
            b = await inner()
            del a
        async def inner():
            x = bytes(2_000_000); del x
            await asyncio.sleep(0.01)
            return bytes(3_000_000)
        async def other():
            for i in range(4):
                kept.append(bytes(7_000_000))
                await asyncio.sleep(0.005)
        async def main():
            await asyncio.gather(one(), other())
        asyncio.run(main())
        """)
    rows = lines(path)
    assert rows["one", 6]["allocated_bytes"] == 1_000_033
    assert rows["one", 7]["allocated_bytes"] < 20_000 and rows["one", 7]["transient_bytes"] < 20_000
    allocated, freed, above = numbers(rows["one", 8])
    assert allocated == pytest.approx(5_000_066, abs=20_000) and freed == pytest.approx(2_000_033, abs=20_000)
    assert above == pytest.approx(3_000_033, abs=20_000)
    assert rows["one", 9]["freed_bytes"] == pytest.approx(1_000_033, abs=1000)


def test_threads_have_their_own(record):
    path = record("""
        import threading
        @profile
        def one():
            a = bytes(2_000_000)
            wait.wait()
        def other():
            b = bytes(50_000_000)
            wait.set()
        wait = threading.Event()
        threads = [threading.Thread(target=one), threading.Thread(target=other)]
        for t in threads: t.start()
        for t in threads: t.join()
        """)
    rows = lines(path)
    assert rows["one", 5]["allocated_bytes"] == 2_000_033
    assert rows["one", 6]["allocated_bytes"] < 100_000


def test_lines_chosen_by_name_and_all_in_one_run(record):
    path = record("""
        def work():
            return [bytes(1000) for _ in range(100)]
        work()
        """, "--memory", "--lines=work")
    row = next(row for (name, line), row in lines(path).items() if (name, line) == ("work", 3))
    assert row["hits"] >= 1 and row["time_ns" if "time_ns" in row else "total_ns"] > 0
    assert row["allocated_bytes"] - row["freed_bytes"] == pytest.approx(100 * 1033, rel=0.05)


def test_the_table_for_people(record):
    path = record("""
        @profile
        def work():
            b = bytes(8 << 20)
            return len(b)
        work()
        """)
    text = subprocess.run([FATHOM, "report", "--lines", str(path)], capture_output=True, text=True).stdout
    row = next(line for line in text.splitlines() if "bytes(8 << 20)" in line)
    assert "8.00 MiB 8.00 MiB" in " ".join(row.split())  # Increment, Transient


MARKED = """
    import fathom
    @fathom.lines
    def timed():
        return bytes(1000)
    @fathom.memory_lines
    def weighed():
        return bytes(2_000_000)
    timed(), weighed()
    """


def test_one_mark_each(record):
    assert {name for name, _ in lines(record(MARKED))} == {"weighed"}
    functions = recordings.report(record(MARKED, "--lines=none_of_them"), "--lines")["functions"]
    assert {function["name"] for function in functions} == {"timed"}


def test_without_memory_the_decorator_is_as_before(record):
    path = record("""
        @profile
        def work():
            return bytes(100)
        work()
        """, "--lines")
    assert lines(path) == {}


# ---- types ----

def collapsed(path, metric):
    out = subprocess.run([FATHOM, "convert", str(path), "--metric", metric, "--to", "collapsed", "-o", "-"],
                         capture_output=True, text=True, check=True).stdout
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in out.splitlines()]


def sys_version(python):
    out = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, out.stdout.split()))


TAKEN = """
    import os, tracemalloc
    class Q: pass
    a = [Q() for _ in range(1000)]
    {}
    b = [Q() for _ in range(5000)]
    {}
    """


@pytest.mark.parametrize("then", ["tracemalloc.start()", "tracemalloc.start(); tracemalloc.stop()"])
@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)",
                                 "os.fork() or [os._exit(0) for x in (Q(), Q())]; os.wait()"])
def test_types_end_where_the_program_takes_the_place(record, python, then, end):
    output = record(TAKEN.format(then, end), "--memory", "--types", status=-9 if "kill" in end else 0)
    if sys_version(python) < (3, 13):
        return
    found = recordings.report(output, "--memory=types", "--at", "all")
    assert [row["blocks"] for row in found["types"] if row["name"] == "__main__.Q"] == [1000]
    notes = [note for note in found["notes"] if note["kind"] == "absent"]
    assert len(notes) == (2 if "fork" in end else 1)
    assert all("tracemalloc" in note["text"] for note in notes)


@pytest.mark.parametrize("end", ["", "os._exit(0)"])
def test_types_that_do_not_end_say_nothing(record, python, end):
    output = record(TAKEN.format("", end), "--memory", "--types")
    if sys_version(python) < (3, 13):
        return
    found = recordings.report(output, "--memory=types", "--at", "all")
    assert [row["blocks"] for row in found["types"] if row["name"] == "__main__.Q"] == [6000]
    assert not [note for note in found["notes"] if "tracemalloc" in note["text"]]


def test_types_at_the_peak(record, python):
    path = record("""
        import sys
        class Slotted:
            __slots__ = ("a",)
        def make():
            return [Slotted() for _ in range(50_000)], [bytearray(3) for _ in range(70_000)]
        kept = make()
        print(sys.getsizeof(kept[0][0]), sys.getsizeof(b""))
        """, "--memory", "--types")
    slotted, _ = map(int, record.stdout.split())
    found = {}
    for stack, size in collapsed(path, "peak"):
        found[stack[-1]] = found.get(stack[-1], 0) + size
    blocks = {}
    for stack, count in collapsed(path, "peak_blocks"):
        blocks[stack[-1]] = blocks.get(stack[-1], 0) + count
    if sys_version(python) < (3, 13):
        assert not any(name.endswith("Slotted") for name in found), "this Python does not tell"
        [note] = recordings.report(path)["notes"]
        assert note["kind"] == "absent" and note["text"].startswith("no types of objects")
        return
    assert blocks["__main__.Slotted"] == 50_000
    assert found["__main__.Slotted"] == 50_000 * slotted
    assert blocks["bytearray"] >= 70_000


# ---- exhausted memory ----

def test_a_refused_allocation_is_named(record):
    path = record("""
        import resource
        def load():
            return bytes(8_000_000_000)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        try:
            load()
        except MemoryError:
            print("caught")
        """)
    assert record.stdout == "caught\n"
    [note] = [note for note in recordings.report(path)["notes"] if note["kind"] == "memory"]
    assert note["text"].startswith("allocations were refused; the largest asked for 8000000033 bytes, in load, ")
    assert note["text"].endswith("program.py:4") and note["count"] >= 1


# ---- the gate ----

BIG = """
def load():
    return bytes(30 << 20)
kept = load()
"""


def test_more_than_allowed(record):
    record(BIG, "--memory", "--fail-above", "20M", status=17)
    first, guilty, *_ = record.stderr.splitlines()
    assert first.startswith("fathom run: process ") and first.endswith("more than 20.0 MiB; most of it by")
    assert guilty.strip() == "30.0 MiB  load (program.py:3) ← <module> (program.py:4)"


def test_less_than_allowed(record):
    record(BIG, "--memory", "--fail-above", "40 MiB")
    assert record.stderr == ""


def test_the_status_of_the_program_comes_first(record):
    record(BIG + "raise SystemExit(3)\n", "--memory", "--fail-above", "1M", status=3)


@pytest.mark.parametrize("words", [["--fail-above", "lots", "--memory"], ["--fail-above", "1M"], ["--types"],
                                   ["--memory=malloc", "--types"], ["--memory=some"]])
def test_what_makes_no_sense(words):
    done = subprocess.run([FATHOM, "run", *words, "-c", "pass"], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_line_profiler_in_a_late_recording(inside, tmp_path):
    """fathom.memory() in a program that was started as usual: its lines have memory, those outside of it do not."""
    inside("""
        def work(n):
            kept = [None] * n
            for i in range(n):
                kept[i] = bytes(1_000_000)
            b = bytes(5_000_000); del b
        def profiled(name):
            profiler = fathom.LineProfiler(work)
            profiler.runcall(work, 7)
            profiler.dump_stats(name)
        profiled("before.fathom")
        for i in range(3):
            with fathom.memory():
                profiled(f"{i}.fathom")
        profiled("after.fathom")
        result = None
        """)
    for i in range(3):
        rows = lines(tmp_path / f"{i}.fathom")
        allocated, freed, above = numbers(rows["work", 7])
        assert allocated - freed == 7 * 1_000_033 and 1_000_033 <= above < 1_001_000
        allocated, freed, above = numbers(rows["work", 8])
        assert allocated - freed == 0 and 5_000_033 <= above < 5_001_000
    for name in ("before", "after"):
        assert all(row["allocated_bytes"] == 0 for row in lines(tmp_path / f"{name}.fathom").values())


def test_a_thread_that_ends_inside_a_line_of_a_late_recording(inside, tmp_path):
    """What is known of it is kept when the heap library forgets it, as the next recording begins."""
    inside("""
        import _thread, ctypes, os, time
        libc = ctypes.CDLL(None)
        libc.pthread_exit.argtypes = [ctypes.c_void_p]
        kept = []
        def exits():
            kept.append(bytes(3_000_000)); libc.pthread_exit(None)
        def wait_for(threads):
            while len(os.listdir("/proc/self/task")) > threads:
                time.sleep(.01)
        def again():
            exits()
        profiler = fathom.LineProfiler(exits)
        profiler.enable()
        for i in range(5):
            with fathom.memory():
                threads = len(os.listdir("/proc/self/task"))
                _thread.start_new_thread(again, ())
                while len(kept) == i:
                    time.sleep(.01)
                wait_for(threads)
        profiler.disable()
        profiler.dump_stats("out.fathom")
        result = None
        """)
    row = lines(tmp_path / "out.fathom")["exits", 9]
    assert row["hits"] == 5 and 5 * 3_000_033 <= row["allocated_bytes"] < 5 * 3_000_033 + 20_000


def test_lines_of_a_run_have_no_memory_of_a_block(record):
    """`fathom run --lines` records no memory; what a block in it does is not for some of its lines."""
    path = record("""
        import fathom, threading
        @fathom.lines
        def work():
            return bytes(1_000_000)
        @fathom.memory_lines
        def other():
            return bytes(1_000_000)
        with fathom.memory():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            work()
            assert fathom.memory_lines(other) is other
            other()
        """, "--lines")
    assert not lines(path)
