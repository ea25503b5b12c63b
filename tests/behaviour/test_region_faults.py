"""Regions used wrongly, in great numbers, and where things end badly: the program does what it does without Fathom, and the recording
has a sane picture, with every collector."""

import os
import subprocess
import textwrap

import pytest

import recordings
from conftest import PACKAGE
from launch import own_run_folders, run  # noqa: F401 (a fixture)

COLLECTORS = [(), ("--calls",), ("--lines",), ("--trace",), ("--memory",)]
every_collector = pytest.mark.parametrize("options", COLLECTORS, ids=lambda options: "".join(options) or "sampled")


@pytest.fixture
def record(python, tmp_path):
    """Run a program plain and recorded: output and status are the same. Its recording."""

    def call(code, *options):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        env = dict(os.environ, PYTHONPATH=PACKAGE)
        plain = subprocess.run([python, str(script)], env=env, capture_output=True, text=True, timeout=300)
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}.fathom"
        done = run(*options, script, python=python, output=output, collectors=(), env=env)
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), (plain.stderr, done.stderr)
        if plain.returncode:
            assert plain.stderr.splitlines()[-1:] == [line for line in done.stderr.splitlines() if "Error" in line][-1:]
        call.stderr = done.stderr
        return output

    return call


def regions(path):
    rows = recordings.report(path, "--regions")["regions"]
    return {"/".join(row["path"]): row for row in rows}


def check_tree(path):
    """Nobody has more than its caller, and nothing is damaged."""
    found = recordings.report(path, "--tree", "--min", "0")
    assert not [note for note in found["notes"] if "damaged" in str(note)]
    for row in found["tree"]:  # of memory, where too few samples were taken: its rows have no time
        assert all(row[key] >= 0 for key in row if key.startswith(("self_", "total_"))), row
    return found["tree"]


@every_collector
def test_closed_in_the_wrong_order_twice_and_elsewhere(record, options):
    path = record("""
        import fathom, threading
        nothing = (None, None, None)
        def main():
            a, b, c = (fathom.region(name) for name in "abc")
            a.__enter__(); b.__enter__()
            a.__exit__(*nothing); a.__exit__(*nothing)
            b.__exit__(*nothing); b.__exit__(*nothing)
            c.__exit__(*nothing)                       # was never entered
            c.__enter__()
            other = threading.Thread(target=c.__exit__, args=nothing)
            other.start(); other.join()                # not in it: nothing
            c.__exit__(*nothing)
            same = fathom.region("same")
            with same, same, same:
                pass
            token = fathom.region_begin("token")
            other = threading.Thread(target=fathom.region_end, args=(token,))
            other.start(); other.join()
            fathom.region_end(token); fathom.region_end(None)
        main()
        print("done")
    """, *options)
    found = regions(path)
    assert {name: row["entered"] for name, row in found.items()} == {"a": 1, "a/b": 1, "c": 1, "same": 3, "token": 1}
    assert not any(row["open"] for row in found.values())
    check_tree(path)


@every_collector
def test_names_of_all_kinds(record, options):
    path = record("""
        import fathom
        def main():
            for name in ("", "größe ⏱", "line\\nbreak", "before zero\\0behind", "\\ud800", "x" * 1_000_000):
                with fathom.region(name, value="\\ud800"):
                    pass
                fathom.instant(name)
                fathom.counter(name, 1.5)
            for name in (None, 7, b"bytes", ["list"]):
                for call in (fathom.region, fathom.region_begin, fathom.instant, lambda n: fathom.counter(n, 1)):
                    try:
                        call(name)
                    except TypeError as error:
                        print("argument 1 must be str, not " + type(name).__name__ in str(error))
        main()
    """, *options)
    rows = recordings.report(path, "--regions")["regions"]
    assert [row["entered"] for row in rows] == [1] * 6
    assert [row["name"] for row in rows] == ["", "größe ⏱", "line\nbreak", "before zero", "\\ud800", "x" * 4096]
    check_tree(path)


@every_collector
def test_very_many_names(record, options):
    path = record("""
        import fathom
        def main():
            for i in range(100_000):
                with fathom.region(f"request {i}"):
                    pass
        main()
    """, *options)
    found = regions(path)
    assert sum(row["entered"] for row in found.values()) == 100_000
    assert len(found) <= 50_001
    assert found["<more regions>"]["entered"] == 100_000 - (len(found) - 1)
    assert sum(row["calls"] for row in check_tree(path) if row["name"].startswith(("request", "<more"))) == (
        100_000 if options and options[0] in ("--calls", "--lines", "--trace") else 0)


@every_collector
def test_deep_recursion(record, options):
    path = record("""
        import fathom, sys, threading
        sys.setrecursionlimit(30_000)
        def deep(n):
            with fathom.region("deep"):
                if n:
                    deep(n - 1)
        def main():
            threading.stack_size(512 << 20)
            thread = threading.Thread(target=deep, args=(10_000,))
            thread.start(); thread.join()
        main()
        def endless():
            with fathom.region("endless"):
                endless()
        sys.setrecursionlimit(1000)
        try:
            endless()
        except RecursionError:
            print("as ever")
    """, *options)
    found = regions(path)
    assert found["deep"]["entered"] == 10_001 and not found["deep"]["open"]
    assert found["endless"]["entered"] > 300 and not found["endless"]["open"]


@every_collector
def test_generators_that_the_collector_closes(record, options):
    path = record("""
        import asyncio, fathom, gc
        def numbers():
            with fathom.region("numbers"):
                yield 1
                yield 2
        async def items():
            with fathom.region("items"):
                yield 1
                yield 2
        class Cycle: pass
        def main():
            for number in numbers():
                break                    # closed by its last reference
            cycle = Cycle()
            cycle.me, cycle.generator = cycle, numbers()
            next(cycle.generator)
            del cycle
            gc.collect()                 # closed by the collector of garbage
            async def one():
                async for item in items():
                    break
            asyncio.run(one())
            global kept
            kept = numbers()             # closed at the end, or never
            next(kept)
            return
        main()
        print("done")
    """, *options)
    found = regions(path)
    assert found["numbers"]["entered"] == 3 and found["numbers"]["open"] <= 1
    assert found["items"]["entered"] == 1 and not found["items"]["open"]
    check_tree(path)


@every_collector
def test_exceptions_of_all_kinds(record, options):
    path = record("""
        import fathom, sys
        def main():
            for error in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
                try:
                    with fathom.region("outer"), fathom.region("inner"):
                        raise error
                except BaseException as raised:
                    print(type(raised).__name__)
            with fathom.region("last"):
                raise ValueError("ends the program")
        main()
    """, *options)
    found = regions(path)
    assert {name: (row["entered"], row["open"]) for name, row in found.items()} == {
        "outer": (4, 0), "outer/inner": (4, 0), "last": (1, 0)}
    check_tree(path)


@every_collector
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)", "os.abort()", "os.execv('/bin/true', ['true'])"])
def test_the_process_ends_in_a_region(record, options, end):
    path = record(f"""
        import fathom, os, resource, signal, sys
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        def main():
            with fathom.region("outer"):
                with fathom.region("inner"):
                    {end}
        main()
    """, *options)
    found = regions(path)
    assert {name: row["entered"] for name, row in found.items()} == {"outer": 1, "outer/inner": 1}
    assert {row["open"] for row in found.values()} == ({0} if "sys" in end else {1})
    check_tree(path)


@every_collector
def test_a_fork_in_a_region_and_threads_that_stay(record, options):
    path = record("""
        import fathom, os, threading
        ready, never = threading.Event(), threading.Event()
        def stays():
            with fathom.region("stays"):
                ready.set()
                never.wait()
        def main():
            threading.Thread(target=stays, daemon=True).start()
            ready.wait()
            with fathom.region("parent"):
                pid = os.fork()
                if not pid:
                    with fathom.region("child"):
                        pass
                    os._exit(0)
                os.waitpid(pid, 0)
        main()
        print("done")
    """, *options)
    found = regions(path)
    assert {name: (row["entered"], row["open"]) for name, row in found.items()} == {
        "stays": (1, 1), "parent": (1, 0), "child": (1, 0)}
    check_tree(path)


@pytest.mark.parametrize("options", COLLECTORS[1:4], ids=lambda options: "".join(options))
def test_sub_interpreters(record, options):
    path = record("""
        import fathom
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        def main():
            with fathom.region("main"):
                number = interpreters.create()
                run = getattr(interpreters, "run_string", None) or interpreters.exec
                try:
                    run(number, "import fathom\\nwith fathom.region('other'): pass")
                except BaseException as error:
                    print(type(error).__name__)
                interpreters.destroy(number)
        main()
        print("done")
    """, *options)
    assert regions(path)["main"]["entered"] == 1
    check_tree(path)
