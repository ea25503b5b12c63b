"""Regions are nodes of the tree of calls: below the function that enters them, with what it calls meanwhile below them. Entries
are worked out by hand; times lie between two of the program's own clock, read inside and around."""

import json
import os
import textwrap

import pytest

import recordings
from conftest import PACKAGE
from launch import own_run_folders, run  # noqa: F401 (a fixture)

EXACT = ["--calls", "--lines", "--trace"]


@pytest.fixture
def record(python, tmp_path):
    def call(code, *options, status=0):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}.fathom"
        done = run(*options, script, python=python, output=output, collectors=(), env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert done.returncode == status, done.stderr
        call.stdout = done.stdout
        return output

    return call


def tree(path):
    """{"main/assembly/work": row} of the program's own functions and regions, in all threads."""
    rows = recordings.report(path, "--tree", "--min", "0")["tree"]
    by_number, paths = {row["node"]: row for row in rows}, {}
    for row in rows:
        names, at = [], row
        while at["parent"] is not None:
            names.append(at["qualname"])
            at = by_number[at["parent"]]
        if "main" in names and not any("import" in name or "<" in name for name in names[: names.index("main")]):
            name = "/".join(reversed(names[: names.index("main") + 1]))
            assert name not in paths
            paths[name] = row
    return paths


def check_sums(paths):
    """Nothing is in two places at once: callees have no more than their caller."""
    for name, row in paths.items():
        inside = sum(other["total_ns"] for other in paths.values() if other["parent"] == row["node"])
        assert row["self_ns"] >= 0 and inside <= row["total_ns"], name


NESTED = """
    import fathom, json
    from time import perf_counter_ns as now
    def work():
        for i in range(2000): pass
    def assemble():
        with fathom.region("assembly"):
            work(); work()
    times = {}
    def main():
        for step in range(3):
            a = now()
            with fathom.region("step"):
                b = now()
                assemble()
                with fathom.region("solve"):
                    work()
                c = now()
            d = now()
            times["in"] = times.get("in", 0) + c - b
            times["out"] = times.get("out", 0) + d - a
            work()
    main()
    print(json.dumps(times))
"""


@pytest.mark.parametrize("option", EXACT)
def test_regions_are_below_their_function(record, option):
    path = record(NESTED, option)
    times = json.loads(record.stdout)
    found = tree(path)
    calls = {name: row["calls"] for name, row in found.items() if "__getattr__" not in name}
    assert calls == {"main": 1, "main/step": 3, "main/work": 3, "main/step/assemble": 3,
                     "main/step/assemble/assembly": 3, "main/step/assemble/assembly/work": 6, "main/step/solve": 3,
                     "main/step/solve/work": 3}
    assert times["in"] <= found["main/step"]["total_ns"] <= times["out"]
    assert found["main/step"]["name"] == "step" and found["main/step"]["file"] == ""
    check_sums(found)


@pytest.mark.parametrize("option", ["--calls", "--trace"])
def test_regions_are_functions_of_tables_too(record, option):
    path = record(NESTED, option)
    row = recordings.one(path, "step")
    assert row["calls"] == 3
    assert row["total_ns"] == tree(path)["main/step"]["total_ns"]
    regions = {row["name"]: row for row in recordings.report(path, "--regions")["regions"]}
    assert regions["step"]["entered"] == 3
    if option == "--calls":  # which begins a moment later and ends with it
        assert row["total_ns"] <= regions["step"]["total_ns"]


@pytest.mark.parametrize("option", EXACT)
def test_a_generator_takes_its_region_along(record, option):
    found = tree(record("""
        import fathom
        def work(): pass
        def numbers():
            with fathom.region("produce"):
                for i in range(3):
                    work()
                    yield i
        def main():
            for number in numbers():
                with fathom.region("consume"):
                    work()
        main()
    """, option))
    assert found["main/numbers"]["calls"] == 1 and found["main/numbers"]["resumes"] == 3
    assert found["main/numbers/produce"]["calls"] == 1
    assert found["main/numbers/produce/work"]["calls"] == 3
    assert found["main/consume"]["calls"] == found["main/consume/work"]["calls"] == 3
    assert "main/work" not in found and "main/numbers/work" not in found
    check_sums(found)


@pytest.mark.parametrize("option", EXACT)
def test_tasks_take_their_regions_along(record, option):
    path = record("""
        import asyncio, fathom
        def work(): pass
        async def request(n):
            with fathom.region("request"):
                work()
                await asyncio.sleep(0)
                work()
        async def all():
            await asyncio.gather(*(request(i) for i in range(5)))
        asyncio.run(all())
    """, option)
    rows = recordings.report(path, "--tree", "--min", "0")["tree"]
    request = next(row for row in rows if row["qualname"] == "request" and row["file"])
    (region,) = (row for row in rows if row["parent"] == request["node"] and row["qualname"] == "request")
    (work,) = (row for row in rows if row["parent"] == region["node"] and row["qualname"] == "work")
    assert (request["calls"], region["calls"], work["calls"]) == (5, 5, 10)
    assert request["resumes"] == 5
    assert not [row for row in rows if row["parent"] == request["node"] and row["qualname"] == "work"]


@pytest.mark.parametrize("option", ["--calls", "--lines"])
def test_a_context_manager_enters_for_its_user(record, option):
    found = tree(record("""
        import contextlib, fathom
        def work(): pass
        @contextlib.contextmanager
        def phase(name):
            with fathom.region(name):
                yield
        def main():
            with phase("managed"):
                work()
            work()
            with contextlib.ExitStack() as stack:
                stack.enter_context(fathom.region("stacked"))
                work()
            work()
        main()
    """, option))
    assert found["main/managed"]["calls"] == found["main/managed/work"]["calls"] == 1
    assert found["main/stacked"]["calls"] == found["main/stacked/work"]["calls"] == 1
    assert found["main/work"]["calls"] == 2
    check_sums(found)


@pytest.mark.parametrize("option", EXACT)
def test_recursion_and_exceptions(record, option):
    found = tree(record("""
        import fathom
        def work(): pass
        def deep(n):
            with fathom.region("level"):
                if n:
                    deep(n - 1)
                else:
                    raise ValueError
        def main():
            try:
                deep(3)
            except ValueError:
                work()
        main()
    """, option))
    assert found["main/deep" + "/level/deep" * 3 + "/level"]["calls"] == 1
    assert found["main/work"]["calls"] == 1
    check_sums(found)


@pytest.mark.parametrize("option", ["--calls", "--lines"])
def test_what_ends_out_of_order(record, option):
    found = tree(record("""
        import fathom
        def work(): pass
        def leave(region): region.__exit__(None, None, None)
        def main():
            a, b = fathom.region("a"), fathom.region("b")
            a.__enter__()
            b.__enter__()
            work()
            leave(a)
            work()
            leave(b)
            work()
            work()
            work()
        main()
    """, option))
    assert found["main/a"]["calls"] == found["main/a/b"]["calls"] == found["main/a/b/work"]["calls"] == 1
    assert found["main/b"]["calls"] == 0 and found["main/b/work"]["calls"] == 1
    assert found["main/work"]["calls"] == 3
    check_sums(found)


@pytest.mark.parametrize("option", EXACT)
def test_what_its_function_leaves_open_ends_with_it(record, option):
    found = tree(record("""
        import fathom
        def work(): pass
        def begin():
            region = fathom.region("open")
            region.__enter__()
            work()
            return region
        def main():
            for i in range(3):
                region = begin()
                work()
                region.__exit__(None, None, None)
        main()
    """, option))
    assert found["main/begin/open"]["calls"] == 3 and found["main/begin/open/work"]["calls"] == 3
    assert found["main/work"]["calls"] == 3
    check_sums(found)


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
@pytest.mark.parametrize("option", EXACT)
def test_what_is_open_at_the_end_has_its_time(record, option, end):
    path = record(f"""
        import fathom, os, signal, sys
        from time import perf_counter_ns as now
        def work():
            for i in range(200_000): pass
        def main():
            work()
            with fathom.region("outer"):
                begin = now()
                with fathom.region("inner"):
                    work()
                    print(now() - begin, flush=True)
                    {end}
        main()
    """, option, status=-9 if "kill" in end else 0)
    found = tree(path)
    least = int(record.stdout)
    assert found["main/outer/inner/work"]["calls"] == 1
    assert least * 0.99 <= found["main/outer"]["total_ns"]  # the length of a tick is known well enough by then
    assert found["main/outer/inner"]["total_ns"] <= found["main/outer"]["total_ns"] <= found["main"]["total_ns"]
    check_sums(found)


@pytest.mark.parametrize("option", EXACT)
def test_a_child_of_fork_is_in_no_region(record, option):
    path = record("""
        import fathom, os
        def work(): pass
        def main():
            with fathom.region("parent"):
                pid = os.fork()
                work()
            if pid:
                os.waitpid(pid, 0)
            with fathom.region("both"):
                work()
        main()
    """, option)
    rows = recordings.report(path, "--tree", "--min", "0")["tree"]
    entered = sorted((row["qualname"], row["calls"]) for row in rows if row["qualname"] in ("parent", "both"))
    assert entered == [("both", 1), ("both", 1), ("parent", 1)]


def test_lines_are_the_same_with_a_region_around_them(record):
    code = """
        import contextlib, fathom
        def work():
            return sum(range(3000))
        def main():
            for i in range(4):
                with {}:
                    work()
                    work()
        main()
    """
    def lines(path):
        functions = recordings.report(path, "--lines")["functions"]
        return {function["qualname"]: [(row["line"], row["hits"]) for row in function["lines"] if row["hits"]]
                for function in functions if function["qualname"] in ("main", "work")}

    with_region = record(code.format('fathom.region("x")'), "--lines")
    assert lines(with_region) == lines(record(code.format("contextlib.nullcontext()"), "--lines"))
    assert lines(with_region)["work"] == [(4, 8)]
    for function in recordings.report(with_region, "--lines")["functions"]:
        for row in function["lines"]:
            assert row["self_ns"] <= row["total_ns"]
