"""Programs that once brought the agent down, or that it brought down: each must simply end well."""

import os
import textwrap

import pytest
from conftest import PACKAGE
import launch
from launch import plain, run


@pytest.fixture
def ends_well(python, tmp_path):
    """Run a program with the package (or under `fathom run` with options); it must print "ok"."""

    def call(code, *options):
        script = tmp_path / "survivor.py"
        script.write_text(textwrap.dedent(code))
        if options:
            done = run(*options, script, python=python, output=tmp_path / "o.fathom")
        else:
            done = plain(python, "-W", "ignore", script, env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr

    return call


def test_fork_in_a_threaded_program_that_profiles_itself(ends_well):
    """The child must not touch the records of threads that it does not have."""
    ends_well("""
        import fathom, os, threading
        p = fathom.Profile(); p.enable()
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait) for _ in range(12)]
        for t in threads: t.start()
        pid = os.fork()
        if pid == 0:
            for _ in range(14):
                t = threading.Thread(target=len, args=("x",)); t.start(); t.join()
            p.disable(); p.create_stats()
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        stop.set()
        for t in threads: t.join()
        p.disable()
        print("ok" if status == 0 else status)
    """)


@pytest.mark.parametrize("builtins", [True, False])
def test_a_timer_written_in_python(ends_well, builtins):
    ends_well(f"""
        import fathom, threading, time
        def timer(): return time.perf_counter()
        p = fathom.Profile(timer, builtins={builtins})
        def f(n): return n and f(n - 1)
        p.enable(); f(5)
        t = threading.Thread(target=lambda: (f(3), p.clear(), f(3))); t.start(); t.join()
        f(2); p.disable(); p.create_stats()
        print("ok")
    """)


def test_a_timer_that_meddles(ends_well):
    ends_well("""
        import fathom
        refused = []
        def timer():
            for change in (p.clear, p.disable):
                try: change()
                except RuntimeError: refused.append(1)
            return 0.0
        p = fathom.Profile(timer)
        p.enable(); len("x"); p.disable()
        print("ok" if refused else "not refused")
    """)


def test_a_clock_that_goes_backwards(ends_well):
    ends_well("""
        import fathom
        ticks = iter(range(10_000, 0, -1))
        p = fathom.Profile(lambda: next(ticks), 1.0)
        def f(): pass
        p.enable(); f(); f(); p.disable(); p.create_stats()
        times = [row[3] for row in p.stats.values()]
        print("ok" if max(times) < 1 else times)
    """)


def test_a_profile_that_dies_while_an_exception_is_raised(ends_well):
    ends_well("""
        import fathom
        def enabled():
            p = fathom.Profile(); p.enable(); return p
        try:
            int(enabled())
        except TypeError:
            print("ok")
    """)


def test_a_program_that_frees_our_tool_id(ends_well):
    ends_well("""
        import fathom, gc, sys
        p = fathom.Profile(); p.enable()
        for tool in range(6) if hasattr(sys, "monitoring") else ():
            if sys.monitoring.get_tool(tool) == "fathom":
                sys.monitoring.free_tool_id(tool)
        def f(): pass
        f(); p.disable(); del p; gc.collect(); f()
        print("ok")
    """)


def test_interpreters_that_compile_beside_each_other(ends_well):
    ends_well("""
        import threading
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        run = getattr(interpreters, "run_string", None) or interpreters.exec
        code = "for n in range(3000): compile(f'x={n}', f'<s{n}>', 'exec')"
        ids = [interpreters.create() for _ in range(3)]
        threads = [threading.Thread(target=run, args=(i, code)) for i in ids]
        for t in threads: t.start()
        for t in threads: t.join()
        print("ok")
    """, "--calls")


def test_lines_keep_no_code_alive(ends_well):
    ends_well("""
        import gc, weakref
        def make():
            scope = {}
            exec("def f(): return 1", scope)
            scope["f"]()
            return weakref.ref(scope["f"].__code__)
        dead = make()
        gc.collect()
        print("ok" if dead() is None else "kept alive")
    """, "--lines=all")


@pytest.mark.parametrize("collectors", [("--lines=all",), ("--calls",), ("--calls", "--lines=all")])
def test_fork_after_returns_that_nobody_heard_of(python, tmp_path, collectors):
    """The calls seem open in the child, but their code is gone."""
    program = launch.program("lost_return.py")
    alone = plain(python, program)
    done = run(program, python=python, output=tmp_path / "o.fathom", collectors=collectors)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (0, "7\n7\n")
