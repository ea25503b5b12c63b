"""What the calls collector must get right where others go wrong; every number is known by
construction of the program."""

import json
import textwrap

import pytest
import recordings
from launch import fathom, plain, run

MS = 1_000_000


@pytest.fixture
def record(python, tmp_path):
    """Run a program under `fathom run --calls`; gives the recording (and checks the exit status)."""

    def call(code, *options, status=0):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        output = tmp_path / f"r{len(list(tmp_path.iterdir()))}.fathom"
        done = run("--calls", *options, script, python=python, output=output)
        assert done.returncode == status, done.stderr
        return output

    return call


def notes_of(path):
    return [note["kind"] for note in recordings.report(path)["notes"]]


# ---- time


def test_self_and_total_times(record):
    path = record("""
        import time
        def sleeps(): time.sleep(0.05)
        def outer():
            time.sleep(0.02)
            sleeps(); sleeps()
        outer()
    """)
    sleep = recordings.one(path, "<built-in method time.sleep>")
    outer = recordings.one(path, "outer")
    sleeps = recordings.one(path, "sleeps")
    assert sleep["calls"] == 3 and sleeps["calls"] == 2
    assert sleep["min_ns"] >= 20 * MS and sleep["max_ns"] >= 50 * MS
    assert sleep["total_ns"] >= 120 * MS
    assert sleeps["total_ns"] >= 100 * MS > sleeps["self_ns"]
    assert outer["total_ns"] >= sleeps["total_ns"] + 20 * MS
    assert outer["total_ns"] == pytest.approx(
        outer["self_ns"] + sleeps["total_ns"] + sleep["total_ns"] - (sleeps["total_ns"] - sleeps["self_ns"]),
        abs=1000)


def test_without_c_calls_their_time_is_the_callers_own(record):
    path = record("""
        import time
        def sleeps(): time.sleep(0.05)
        sleeps()
    """, "--no-c-calls")
    table = recordings.functions(path)
    assert "<built-in method time.sleep>" not in table
    assert table["sleeps"][0]["self_ns"] >= 50 * MS


def test_recursion_counts_time_once(record):
    path = record("""
        import time
        def down(n):
            time.sleep(0.01)
            if n: down(n - 1)
        down(9)
    """)
    down = recordings.one(path, "down")
    program = recordings.one(path, "<module>", "-r", "program.py")
    assert (down["calls"], down["primitive_calls"]) == (10, 1)
    assert 100 * MS <= down["total_ns"] <= program["total_ns"]


def test_a_tree_leaves_small_branches_out_unless_asked(record):
    """Under 1 % of the time by default; nothing with --min 0. Sleeping gives the shares."""
    path = record("""
        import time
        def giant(): time.sleep(0.2)
        def dwarf(): pass
        giant(); dwarf()
    """)
    shown = fathom("report", path, "--tree").stdout
    assert "giant" in shown and "dwarf" not in shown
    assert "dwarf" in fathom("report", path, "--tree", "--min", "0").stdout


# ---- generators and coroutines


def test_generator_calls_resumes_and_suspended_time(record):
    path = record("""
        import time
        def numbers():
            for i in range(4):
                yield i
        for x in numbers():
            time.sleep(0.02)
    """)
    row = recordings.one(path, "numbers")
    assert (row["calls"], row["resumes"]) == (5, 4)
    assert row["suspended_ns"] >= 80 * MS
    assert row["total_ns"] < row["suspended_ns"], "else that would be in it"


def test_awaited_time_is_shown_apart(record):
    path = record("""
        import asyncio
        async def inner():
            await asyncio.sleep(0.2)
        async def outer():
            await inner()
        asyncio.run(outer())
    """)
    for name in ("inner", "outer"):
        row = recordings.one(path, name)
        assert row["calls"] - row["resumes"] == 1
        assert row["suspended_ns"] + row["total_ns"] >= 200 * MS, name
        assert row["total_ns"] < row["suspended_ns"], name


def test_two_generators_of_one_function_do_not_mix(record):
    path = record("""
        import time
        def g():
            yield 1
            yield 2
        a, b, now = g(), g(), time.perf_counter_ns
        stamps = [now()]
        for each in (a, None, b, a, b, a, b):
            next(each, None) if each else time.sleep(0.03)
            stamps.append(now())
        with open(__file__ + ".stamps", "w") as file:
            file.write(str(stamps))
    """)
    row = recordings.one(path, "g")
    assert (row["calls"], row["resumes"]) == (6, 4)
    # The most that each can be, by the program's own clock: from before one resumption until after the next.
    at = json.loads((path.parent / "program.py.stamps").read_text())
    most = (at[4] - at[0]) + (at[6] - at[3]) + (at[5] - at[2]) + (at[7] - at[4])
    assert 30 * MS <= row["suspended_ns"] <= most


# ---- threads


def test_every_thread_has_its_own_tree(record):
    path = record("""
        import threading, time
        def spin(n):
            return fib(n)
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        threads = [threading.Thread(target=spin, args=(12,), name=f"spinner-{i}") for i in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        fib(10)
    """)
    calls_of_fib_12, calls_of_fib_10 = 465, 177
    threads = recordings.report(path, "--threads")["threads"]
    names = sorted(t["name"] for t in threads)
    assert names == ["MainThread"] + [f"spinner-{i}" for i in range(4)]
    for t in threads:
        fib = recordings.one(path, "fib", "--thread", str(t["thread"]))
        wanted = calls_of_fib_10 if t["name"] == "MainThread" else calls_of_fib_12
        assert (fib["calls"], fib["primitive_calls"]) == (wanted, 1)
        assert fib["total_ns"] >= fib["self_ns"] > 0
    assert recordings.one(path, "fib")["calls"] == 4 * calls_of_fib_12 + calls_of_fib_10


def test_threads_of_the_thread_module_and_cpu_time(record):
    path = record("""
        import _thread, time
        done = _thread.allocate_lock(); done.acquire()
        def busy():
            end = time.thread_time() + 0.1
            while time.thread_time() < end: pass
            done.release()
        _thread.start_new_thread(busy, ())
        done.acquire()
        time.sleep(0.05)
    """)
    assert recordings.one(path, "busy")["calls"] == 1
    threads = recordings.report(path, "--threads")["threads"]
    assert len(threads) == 2
    cpu = sorted(t["cpu_ns"] for t in threads)
    assert 100 * MS <= cpu[1] < 400 * MS


def test_many_short_threads(record):
    path = record("""
        import threading
        def work(): return len([1])
        for i in range(300):
            t = threading.Thread(target=work); t.start(); t.join()
    """)
    assert recordings.one(path, "work")["calls"] == 300
    assert notes_of(path) == []


# ---- identity


def test_functions_that_look_alike_stay_apart(record):
    path = record("""
        a, b = lambda: 1, lambda: 2
        a(); b(); b()
        for n in (1, 2, 2):
            exec(f"def twin(): return {n}\\ntwin()", {})
    """)
    assert sorted(r["calls"] for r in recordings.functions(path)["<lambda>"]) == [1, 2]
    assert sorted(r["calls"] for r in recordings.functions(path)["twin"]) == [1, 2]


def test_qualified_names(record):
    path = record("""
        class A:
            class B:
                def method(self):
                    def local(): pass
                    local()
        A.B().method()
    """)
    assert recordings.one(path, "A.B.method")["name"] == "method"
    assert recordings.one(path, "A.B.method.<locals>.local")["calls"] == 1


def test_code_that_comes_and_goes_is_not_kept_and_not_confused(record):
    path = record("""
        import gc
        for i in range(3000):
            scope = {}
            exec(f"def f{i % 3}(): return {i % 3}", scope)
            scope[f"f{i % 3}"]()
    """)
    table = recordings.functions(path)
    assert [sum(r["calls"] for r in table[f"f{k}"]) for k in range(3)] == [1000, 1000, 1000]
    assert all(len(table[f"f{k}"]) == 1 for k in range(3))


# ---- deep, strange, hostile


def test_recursion_100_000_deep(record):
    for options in ([], ["--no-c-calls"]):
        path = record("""
            import sys, threading
            sys.setrecursionlimit(200_000)
            def down(n):
                if n: down(n - 1)
            down(100_000)
        """, *options)
        row = recordings.one(path, "down")
        assert (row["calls"], row["primitive_calls"]) == (100_001, 1)
        assert notes_of(path) == []


def test_the_recursion_limit_is_where_it_was(python, record, tmp_path):
    program = tmp_path / "limit.py"
    program.write_text(textwrap.dedent("""
        def depth(n=0):
            try:
                return depth(n + 1)
            except RecursionError:
                return n
        class C:
            def __getattr__(self, name): return getattr(self, name + "x")
        print(depth())
        try: C().a
        except RecursionError as e: print(type(e))
        print(depth())
    """))
    wanted = plain(python, program).stdout
    for options in ([], ["--no-c-calls"]):
        assert run("--calls", *options, program, python=python,
                   output=tmp_path / f"x{len(options)}.fathom").stdout == wanted


def test_exceptions_close_calls(record):
    path = record("""
        def raises(n):
            if n == 0: raise ValueError
            raises(n - 1)
        for i in range(5):
            try: raises(3)
            except ValueError: pass
        def after(): pass
        after()
    """)
    assert recordings.one(path, "raises")["calls"] == 20
    callers = recordings.report(path, "--callers=after")
    assert "raises" not in str(callers["functions"] if "functions" in callers else callers)
    assert notes_of(path) == []


def test_the_programs_own_profiler_works_and_ours_goes_on(record):
    path = record("""
        import sys
        def f(): pass
        seen = []
        f()
        sys.setprofile(lambda frame, event, arg: seen.append(event))
        f(); f()
        sys.setprofile(None)
        f()
        assert seen.count("call") == 2, seen
    """)
    assert recordings.one(path, "f")["calls"] == 4
    assert notes_of(path) == []


def test_removing_a_profiler_that_is_not_there_changes_nothing(record):
    path = record("""
        import sys
        def f(): pass
        f(); sys.setprofile(None); f(); f()
        print(sys.getprofile())
    """)
    assert recordings.one(path, "f")["calls"] == 3


def test_cprofile_inside_the_program(python, record):
    path = record("""
        import cProfile
        def f(): pass
        p = cProfile.Profile()
        f()
        p.enable(); f(); f(); p.disable()
        counts = {e.code.co_name: e.callcount for e in p.getstats() if not isinstance(e.code, str)}
        assert counts["f"] == 2, counts
    """)
    if "3.11" not in python:
        assert recordings.one(path, "f")["calls"] == 3


def test_settrace_and_monitoring_tools_of_the_program(python, record):
    record("""
        import sys
        lines = []
        def trace(frame, event, arg):
            lines.append(event)
            return trace
        def f():
            x = 1
            return x
        sys.settrace(trace); f(); sys.settrace(None)
        assert lines == ["call", "line", "line", "return"], lines
        if hasattr(sys, "monitoring"):
            for tool in (0, 1, 2, 3, 4):
                sys.monitoring.use_tool_id(tool, "mine")
                sys.monitoring.free_tool_id(tool)
    """)


def test_sub_interpreters_are_left_alone(record):
    path = record("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        def here(): pass
        here()
        i = interpreters.create()
        run = getattr(interpreters, "run_string", None) or interpreters.exec
        run(i, "def elsewhere(): pass\\nfor n in range(10): elsewhere()")
        interpreters.destroy(i)
        here()
    """)
    table = recordings.functions(path)
    assert table["here"][0]["calls"] == 2
    assert "elsewhere" not in table


def test_source_of_generated_code_is_kept(record):
    path = record("""
        exec("def made(x):\\n    return x + 1  # marker-7261\\nmade(1)", {})
    """)
    shown = fathom("report", path, "--source=made")
    assert "return x + 1  # marker-7261" in shown.stdout, shown.stderr


def test_source_of_files_is_kept_even_when_the_file_is_gone(record, tmp_path):
    path = record("""
        def written():
            return 2  # marker-8802
        written()
    """)
    (tmp_path / "program.py").unlink()
    shown = fathom("report", path, "--source=written")
    assert "return 2  # marker-8802" in shown.stdout, shown.stderr


# ---- processes


def test_a_forked_child_records_only_what_it_does(record):
    path = record("""
        import os, time
        def before(): pass
        def in_child(): time.sleep(0.03)
        def in_parent(): pass
        def forks():
            pid = os.fork()
            if pid == 0:
                in_child(); in_child()
                os._exit(5)
            in_parent()
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        before()
        assert forks() == 5
    """)
    processes = recordings.report(path, "--processes")["processes"]
    assert len(processes) == 2
    child = next(p for p in processes if p["forked"])
    parent = next(p for p in processes if not p["forked"])
    in_child = recordings.functions(path, "--process", str(child["process"]))
    in_parent = recordings.functions(path, "--process", str(parent["process"]))
    assert in_child["in_child"][0]["calls"] == 2 and "in_child" not in in_parent
    assert in_parent["in_parent"][0]["calls"] == 1 and "in_parent" not in in_child
    assert "before" not in in_child
    # The frames it was forked in are there with the time since the fork, and no call of their own.
    assert in_child["forks"][0]["calls"] == 0
    assert in_child["forks"][0]["total_ns"] >= 60 * MS


def test_a_thread_started_after_a_fork_begins_with_its_own_stack(record):
    path = record("""
        import os, threading
        def in_thread(): pass
        def forks():
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
            t = threading.Thread(target=in_thread, name="late"); t.start(); t.join()
        forks()
    """)
    late = next(t for t in recordings.report(path, "--threads")["threads"] if t["name"] == "late")
    table = recordings.functions(path, "--thread", str(late["thread"]))
    assert table["in_thread"][0]["calls"] == 1
    assert "forks" not in table and "<module>" not in table


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pool_workers_are_in_the_recording(record, method):
    path = record(f"""
        import multiprocessing
        def square(x): return x * x
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                assert pool.map(square, range(20), chunksize=1) == [x * x for x in range(20)]
    """)
    assert recordings.one(path, "square")["calls"] == 20


@pytest.mark.parametrize("ending, status", [
    ("os._exit(3)", 3),
    ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    ("os.abort()", -6),
    ("sys.exit(7)", 7),
    ("raise KeyboardInterrupt", -2),
    ("os.execv('/bin/true', ['true'])", 0),
])
def test_nothing_is_lost_however_it_ends(record, ending, status):
    path = record(f"""
        import os, signal, sys, time
        def work(): time.sleep(0.02)
        def last():
            work()
            {ending}
        work(); last()
    """, status=status)
    work = recordings.one(path, "work")
    assert work["calls"] == 2 and work["total_ns"] >= 40 * MS
    assert recordings.one(path, "last")["total_ns"] >= 20 * MS
