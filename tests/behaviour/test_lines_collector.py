"""The lines collector of `fathom run --lines`, by programs whose answers are known by construction.

Most programs carry their answer: `# = 3` behind a line says that it must be hit three times, all
functions on that line together; a line of a function without such a mark must not be hit. The lines of the
module itself are left out: there the compiler decides what a decorator or a def consists of.
"""

import os
import re
import textwrap

import pytest

import recordings
from conftest import PACKAGE
from launch import own_run_folders, run  # noqa: F401 (a fixture)

MS = 1_000_000


@pytest.fixture
def record(python, tmp_path):
    """Run a program under `fathom run`; the path of the recording. The program can import fathom."""

    def call(code, *options, status=0):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}.fathom"
        done = run(*(options or ("--lines",)), script, python=python, output=output,
                   env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert done.returncode == status, done.stderr
        return output

    return call


def of_the_program(path, *options):
    """The functions with lines whose code is in the program's file, its module body left out."""
    return [function for function in recordings.report(path, "--lines", *options)["functions"]
            if os.path.basename(function["file"]) in ("program.py", "<string>")
            and function["name"] not in ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>")
            and not (function["file"] == "<string>" and function["name"] not in ("made", "twin"))]


def tables(path, *options):
    """{qualname: {line: row}}"""
    found = {}
    for function in of_the_program(path, *options):
        assert function["qualname"] not in found, function
        found[function["qualname"]] = {row["line"]: row for row in function["lines"]}
    return found


def hits(path, *options):
    """{line: hits}, over all functions."""
    found = {}
    for function in of_the_program(path, *options):
        for row in function["lines"]:
            if row["hits"]:
                found[row["line"]] = found.get(row["line"], 0) + row["hits"]
    return found


def marks(code):
    """What the marks in a program say: {line: hits}."""
    said = {}
    for number, line in enumerate(textwrap.dedent(code).splitlines(), 1):
        mark = re.search(r"# = (\d+)$", line)
        if mark:
            said[number] = int(mark[1])
    return said


@pytest.fixture
def check(record):
    """Run a program with marks and compare; with lines alone and together with calls."""

    def call(code, also=None):
        wanted = marks(code)
        for begin, count in (also or {}).items():  # where a mark cannot stand
            wanted.update((number, count) for number, line
                          in enumerate(textwrap.dedent(code).splitlines(), 1)
                          if line.strip().startswith(begin))
        for options in (["--lines"], ["--lines", "--calls"]):
            assert hits(record(code, *options)) == wanted, options

    return call


# ---- statements


def test_loops_and_branches(check):
    check("""
        def loops(n):
            total = 0  # = 1
            for i in range(n):  # = 11
                if i % 2:  # = 10
                    total += i  # = 5
                    continue  # = 5
                elif i == 8:  # = 5
                    eight = True  # = 1
                total -= 1  # = 5
            else:
                total *= 2  # = 1
            while total > 0:  # = 15
                total -= 3  # = 14
            for i in ():  # = 1
                never = i
            return total  # = 1
        assert loops(10) == -2
    """)


def test_exceptions(check):
    check("""
        def fails(n):
            if n == 2:  # = 5
                raise ValueError(n)  # = 1
            return n  # = 4

        def catches():
            caught = 0  # = 1
            for n in range(5):  # = 6
                try:  # = 5
                    fails(n)  # = 5
                    caught += 0  # = 4
                except KeyError:  # = 1
                    never = 1
                except ValueError:  # = 1
                    caught += 1  # = 1
                finally:
                    caught += 10  # = 5
            return caught  # = 1
        assert catches() == 51
    """)


def test_an_exception_that_goes_through_many_frames(check):
    check("""
        def down(n):
            if n:  # = 9
                down(n - 1)  # = 6
                never = 1
            else:
                raise KeyError  # = 3

        def again():
            for _ in range(3):  # = 4
                try:  # = 3
                    down(2)  # = 3
                except KeyError:  # = 3
                    pass  # = 3
        again()
    """)


def test_with(check):
    # The line of a `with` begins twice: to enter and to leave.
    check("""
        import contextlib
        @contextlib.contextmanager
        def manager():
            yield 1  # = 3

        def use():
            for _ in range(3):  # = 4
                with manager() as value:  # = 6
                    value += 1  # = 3
            return value  # = 1
        use()
    """)


def test_match(check):
    check("""
        def classify(value):
            match value:  # = 4
                case 0:  # = 4
                    return "zero"  # = 1
                case [a, b]:  # = 3
                    return "pair"  # = 1
                case str():  # = 2
                    return "text"  # = 1
            return None  # = 1
        assert [classify(v) for v in (0, [1, 2], "x", 3.5)] == ["zero", "pair", "text", None]
    """)


def test_a_statement_over_several_lines_counts_once_on_its_first(check):
    check(r'''
        def add(*values):
            return sum(values)  # = 19

        def statements():
            a = add(  # = 1
                1,
                add(2, 3),
                add(
                    4,
                    5,
                ),
            )
            b = [  # = 1
                add(a),
                add(a),
            ]
            c = {"x": add(1),  # = 1
                 "y": add(2)}
            d = add(1) + \
                add(2) + \
                add(3)
            e = """a
                text {}
            """.format(add(1))
            if (add(1)  # = 1
                    and add(0)
                    and never()):
                never()
            for i in range(  # = 3
                add(1, 1),
            ):
                add(i,  # = 2
                    i)
            f = (add(1)  # = 1
                 if add(1)
                 else never())
            assert (f and  # = 1
                    add(f)), (
                        "text")
            return [  # = 1
                a, b, c, d, e, f,
            ]
        statements()
    ''', also={"d = add(1)": 1, 'e = """a': 1})


def test_a_statement_over_several_lines_in_a_loop_counts_once_a_round(check):
    check("""
        def several(n):
            found = {}  # = 1
            while n:  # = 8
                found.update(  # = 7
                    x=n,
                    y=max(
                        n,
                        2),
                )
                n -= 1  # = 7
            return found  # = 1
        several(7)
    """)


# ---- functions of all kinds


def hits_by_function(path, *options):
    return {name: {line: row["hits"] for line, row in rows.items() if row["hits"]}
            for name, rows in tables(path, *options).items()}


def test_functions_inside_functions_have_lines_of_their_own(record):
    path = record("""
        def outer(n):
            def inner(x):
                return x + 1
            total = 0
            for i in range(n):
                total += inner(i)
            return total
        outer(4); outer(1)
    """)
    assert hits_by_function(path) == {"outer": {3: 2, 5: 2, 6: 7, 7: 5, 8: 2},
                                      "outer.<locals>.inner": {4: 5}}


def test_a_body_on_the_line_of_its_def(record):
    path = record("""
        def one(): return 1
        def two(x): y = x; return y
        for _ in range(5):
            one()
        for _ in range(3):
            two(1)
        short = lambda a: a
        short(1); short(2)
    """)
    assert hits_by_function(path) == {"one": {2: 5}, "two": {3: 3}, "<lambda>": {8: 2}}


def test_decorated_functions(check):
    check("""
        class Deco:
            def __init__(self, f):
                self.f = f  # = 2
            def __call__(self, x):
                return self.f(x)  # = 9

        @Deco
        def a(x):
            return x  # = 4

        @Deco
        def b(x):
            return x * 2  # = 5

        def use():
            a(1), a(2), a(3), a(4)  # = 1
            for _ in range(5):  # = 6
                b(1)  # = 5
        use()
    """.replace("class Deco:\n", "class Deco:  # = 1\n")
       .replace("def __init__(self, f):\n", "def __init__(self, f):  # = 1\n")
       .replace("def __call__(self, x):\n", "def __call__(self, x):  # = 1\n"))


def test_comprehensions_are_part_of_their_line(record):
    path = record("""
        def compress(n):
            a = [i * 2 for i in range(n)]
            b = {i for i in
                 range(n)
                 if i}
            c = {i: j
                 for i in range(n)
                 for j in range(2)}
            d = sum(i for i in range(n))
            return a, b, c, d
        for _ in range(3):
            compress(5)
    """)
    found = hits_by_function(path)
    assert found["compress"] == {3: 3, 4: 3, 7: 3, 10: 3, 11: 3}
    # Where they are functions of their own, their lines are inside those of the function.
    inside = {line for name, rows in found.items() if name != "compress" for line in rows}
    assert inside <= {3, 4, 7, 10}


def test_methods_and_properties(check):
    check("""
        def make():
            class C:  # = 2
                def __init__(self):  # = 1
                    self.x = 1  # = 4
                def method(self):  # = 1
                    return self.x  # = 3
            return C  # = 1
        C = make()
        for _ in range(3):
            C().method()
        C()
    """)


# ---- generators and coroutines


def test_generators(record):
    path = record("""
        import time
        def numbers():
            for i in range(4):
                got = yield i
            return "end"
        def through():
            result = yield from numbers()
            return result
        for x in through():
            time.sleep(0.02)
    """)
    assert hits_by_function(path) == {"numbers": {4: 5, 5: 4, 6: 1}, "through": {8: 1, 9: 1}}
    found = tables(path)
    assert found["numbers"][5]["suspended_ns"] >= 80 * MS
    assert found["through"][8]["suspended_ns"] >= 80 * MS
    assert found["numbers"][5]["total_ns"] < found["numbers"][5]["suspended_ns"], "else that would be in it"
    assert found["numbers"][4]["suspended_ns"] == 0


def test_a_generator_that_is_thrown_into_or_closed(check):
    check("""
        def echo():
            value = None  # = 2
            while True:  # = 4
                try:  # = 4
                    value = yield value  # = 4
                except KeyError:  # = 3
                    value = "thrown"  # = 1
                finally:
                    last = value  # = 4
        def use():
            g = echo()  # = 1
            next(g), g.send(1), g.throw(KeyError())  # = 1
            g.close()  # = 1
            h = echo()  # = 1
            next(h)  # = 1
            del h  # = 1
        use()
    """)


def test_awaited_time_is_apart_from_active_time(record):
    path = record("""
        import asyncio, time
        async def inner():
            time.sleep(0.03)
            await asyncio.sleep(0.2)
            return 1
        async def outer():
            for _ in range(2):
                await inner()
        async def main():
            await asyncio.gather(outer(), outer())
        asyncio.run(main())
    """)
    found = tables(path)
    assert hits_by_function(path) == {"inner": {4: 4, 5: 4, 6: 4}, "outer": {8: 6, 9: 4},
                                      "main": {11: 1}}
    assert found["inner"][4]["total_ns"] >= 120 * MS and found["inner"][4]["suspended_ns"] == 0
    # A sleep begins a little before its coroutine is suspended, and on a busy machine not only a little.
    assert found["inner"][5]["suspended_ns"] + found["inner"][5]["total_ns"] >= 800 * MS
    assert found["inner"][5]["total_ns"] < found["inner"][5]["suspended_ns"], "else that would be in it"
    assert found["outer"][9]["total_ns"] >= 120 * MS
    assert found["outer"][9]["suspended_ns"] + found["outer"][9]["total_ns"] >= 920 * MS


def test_async_generators_and_async_with(check):
    check("""
        import asyncio, contextlib
        async def numbers(n):
            for i in range(n):  # = 4
                await asyncio.sleep(0)  # = 3
                yield i  # = 3
        class Manager:
            async def __aenter__(self):
                return self  # = 2
            async def __aexit__(self, *info):
                await asyncio.sleep(0)  # = 2
        async def main():
            total = 0  # = 1
            async for i in numbers(3):  # = 4
                total += i  # = 3
            for _ in range(2):  # = 3
                async with Manager():  # = 4
                    total += 1  # = 2
            return total  # = 1
        assert asyncio.run(main()) == 5
    """.replace("class Manager:\n", "class Manager:  # = 1\n")
       .replace("def __aenter__(self):\n", "def __aenter__(self):  # = 1\n")
       .replace("def __aexit__(self, *info):\n", "def __aexit__(self, *info):  # = 1\n"))


# ---- time


def test_times_include_callees_and_self_times_do_not(record):
    path = record("""
        import time
        def leaf():
            time.sleep(0.05)
        def outer():
            time.sleep(0.02)
            leaf(); leaf()
        outer()
    """, "--lines", "--calls")
    found = tables(path)
    assert found["outer"][6]["total_ns"] >= 20 * MS
    assert found["outer"][7]["total_ns"] >= 100 * MS
    assert found["outer"][7]["self_ns"] < found["leaf"][4]["total_ns"], "else that would be in it"
    assert found["leaf"][4]["total_ns"] <= found["outer"][7]["total_ns"]
    assert found["leaf"][4]["min_ns"] >= 50 * MS


def test_without_calls_time_of_what_is_not_recorded_is_the_lines_own(record):
    path = record("""
        import time, json
        def work():
            time.sleep(0.05)
            json.dumps([1])
        work()
    """)
    row = tables(path)["work"][4]
    assert row["self_ns"] == row["total_ns"] >= 50 * MS


def test_recursion_counts_inclusive_time_once(record):
    path = record("""
        import time
        def down(n):
            time.sleep(0.01)
            if n:
                down(n - 1)
        def top():
            down(9)
        top()
    """)
    found = tables(path)
    assert hits_by_function(path) == {"down": {4: 10, 5: 10, 6: 9}, "top": {8: 1}}
    whole = found["top"][8]["total_ns"]
    assert 90 * MS <= found["down"][6]["total_ns"] <= whole
    assert 100 * MS <= found["down"][4]["total_ns"] <= whole
    assert sum(row["self_ns"] for row in found["down"].values()) <= whole


WORK = """
    import time, random
    def fib(n):
        if n < 2:
            return n
        a = fib(n - 1)
        return a + fib(n - 2)
    def numbers(n):
        for i in range(n):
            yield sorted([i, n, 3])[0]
    class Thing:
        def __init__(self, n):
            self.n = [len(str(i))
                      for i in range(n)]
        def fails(self):
            try:
                raise ValueError(self.n)
            except ValueError:
                return sum(self.n)
    def main():
        fib(12)
        list(numbers(50))
        for i in range(20):
            Thing(i).fails()
        time.sleep(0.01)
    main()
"""


def test_self_times_of_lines_add_up_to_the_self_time_of_the_function(record):
    path = record(WORK, "--lines", "--calls")
    functions = {(row["file"], row["line"], row["qualname"]): row
                 for row in recordings.report(path)["functions"]}
    checked = 0
    for function in recordings.report(path, "--lines")["functions"]:
        rows = function["lines"]
        whole = functions[function["file"], function["line"], function["qualname"]]
        assert abs(sum(row["self_ns"] for row in rows) - whole["self_ns"]) <= 1000, function
        checked += 1
    assert checked >= 6


def test_shortest_longest_and_percentiles(record):
    path = record("""
        import time
        def varied():
            for i in range(10):
                time.sleep(0.1 if i == 7 else 0.001)
        varied()
    """)
    row = tables(path)["varied"][5]
    assert row["hits"] == 10
    assert 1 * MS <= row["min_ns"] <= row["p50_ns"] < row["max_ns"]
    assert row["p50_ns"] <= row["p99_ns"] <= row["max_ns"]
    assert row["max_ns"] >= 100 * MS
    assert row["total_ns"] >= row["max_ns"] + 9 * row["min_ns"]


# ---- threads and processes


def test_lines_of_all_threads_are_added_up(check):
    check("""
        import threading
        def work(n):
            total = 0  # = 6
            for i in range(n):  # = 306
                total += i  # = 300
            return total  # = 6
        def main():
            threads = [threading.Thread(target=work, args=(50,))  # = 1
                       for _ in range(5)]
            for t in threads: t.start()
            for t in threads:  # = 6
                t.join()  # = 5
            work(50)  # = 1
        main()
    """.replace("for t in threads: t.start()", "list(map(threading.Thread.start, threads))  # = 1"))


def test_a_forked_child_counts_only_what_it_does(record):
    path = record("""
        import os
        def work(n):
            for i in range(n):
                i += 1
        def main():
            work(3)
            pid = os.fork()
            if pid == 0:
                work(10)
                os._exit(0)
            os.waitpid(pid, 0)
            work(5)
        main()
    """)
    processes = recordings.report(path, "--processes")["processes"]
    child = next(str(p["process"]) for p in processes if p["forked"])
    parent = next(str(p["process"]) for p in processes if not p["forked"])
    assert hits_by_function(path, "--process", parent) == {
        "work": {4: 4 + 6, 5: 8}, "main": {7: 1, 8: 1, 9: 1, 12: 1, 13: 1}}
    in_child = hits_by_function(path, "--process", child)
    assert in_child["work"] == {4: 11, 5: 10}
    assert in_child["main"] == {9: 1, 10: 1, 11: 1}
    assert hits_by_function(path)["work"] == {4: 21, 5: 18}


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_lines_of_pool_workers(record, method):
    path = record(f"""
        import multiprocessing
        def square(x):
            y = x * x
            return y
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                pool.map(square, range(20), chunksize=1)
    """)
    assert hits_by_function(path)["square"] == {4: 20, 5: 20}


@pytest.mark.parametrize("ending, status", [
    ("os._exit(3)", 3), ("os.kill(os.getpid(), signal.SIGKILL)", -9), ("sys.exit(7)", 7),
])
def test_lines_are_there_however_it_ends(record, ending, status):
    path = record(f"""
        import os, signal, sys
        def work(n):
            for i in range(n):
                pass
        def last():
            work(4)
            {ending}
        last()
    """, status=status)
    found = hits_by_function(path)
    assert found["work"] == {4: 5, 5: 4}
    assert found["last"][7] == 1


# ---- strange things


def test_code_without_a_file(record):
    path = record("""
        text = '''
        def made(n):
            for i in range(n):
                n += i
            return n
        made(4)
        '''
        import textwrap
        exec(textwrap.dedent(text), {})
    """, "--lines=made")
    assert hits_by_function(path) == {"made": {3: 5, 4: 4, 5: 1}}


def test_recursion_10_000_deep(record):
    for options in (["--lines"], ["--lines", "--calls"]):
        path = record("""
            import sys
            sys.setrecursionlimit(50_000)
            def down(n):
                if n:
                    down(n - 1)
            down(10_000)
        """, *options)
        assert hits_by_function(path) == {"down": {5: 10_001, 6: 10_000}}


def test_the_programs_own_trace_function(record):
    path = record("""
        import sys
        def f():
            x = 1
            return x
        lines = []
        def trace(frame, event, arg):
            lines.append(event)
            return trace
        f()
        sys.settrace(trace)
        f()
        sys.settrace(None)
        f()
        assert lines[:4] == ["call", "line", "line", "return"], lines
    """)
    assert hits_by_function(path)["f"] == {4: 3, 5: 3}


def test_functions_that_look_alike(record):
    path = record("""
        for n in (1, 2, 2):
            exec(f"def twin():\\n    return {n}\\ntwin()", {})
    """, "--lines=twin")
    twins = [f for f in recordings.report(path, "--lines")["functions"] if f["name"] == "twin"]
    assert sorted(f["hits"] for f in twins) == [1, 2]


def test_physical_lines_on_request(record):
    """A call over three lines: its name, its two arguments, and back to the call itself."""
    program = """
        def add(a, b):
            return a + b
        def work():
            x = add(
                1,
                2,
            )
            return x
        work()
        """
    first = hits_by_function(record(program))["work"]
    assert list(first.values()) == [1, 1]
    apart = hits_by_function(record(program, "--lines", "--split-lines"))["work"]
    call, one, two, back = apart
    assert (one, two, back) == (call + 1, call + 2, call + 4)
    assert apart[one] == apart[two] == apart[back] == 1 and apart[call] >= 1


# ---- choosing


CHOICES = """
    import textwrap
    def alpha():
        textwrap.dedent(" x")
    def beta():
        def inner():
            return 1
        return inner()
    class Gamma:
        def one(self):
            return self.two()
        def two(self):
            return 2
    alpha(); beta(); Gamma().one()
"""


OWN = {"alpha", "beta", "beta.<locals>.inner", "Gamma", "Gamma.one", "Gamma.two"}


def chosen(path):
    """(names of the program's functions, base names of all files) with lines."""
    functions = recordings.report(path, "--lines")["functions"]
    files = {os.path.basename(function["file"]) for function in functions}
    return set(tables(path)), files


@pytest.mark.parametrize("choice, wanted, file", [
    ("mine", OWN, "program.py"),
    ("alpha", {"alpha"}, "program.py"),
    ("beta", {"beta", "beta.<locals>.inner"}, "program.py"),
    ("[ab]*a", {"alpha", "beta", "beta.<locals>.inner"}, "program.py"),
    ("Gamma", {"Gamma", "Gamma.one", "Gamma.two"}, "program.py"),
    ("Gamma.two", {"Gamma.two"}, "program.py"),
    ("program.alpha", {"alpha"}, "program.py"),
    ("*/program.py", OWN, "program.py"),
    ("textwrap", set(), "textwrap.py"),
    ("textwrap.py", set(), "textwrap.py"),
    ("textwrap.dedent", set(), "textwrap.py"),
])
def test_choosing_functions(record, choice, wanted, file):
    own, files = chosen(record(CHOICES, f"--lines={choice}"))
    assert (own, files) == (wanted, {file})


def test_choices_add_up(record):
    for options in (["--lines=textwrap.dedent,alpha"], ["--lines=textwrap.dedent", "--lines=alpha"]):
        own, files = chosen(record(CHOICES, *options))
        assert (own, files) == ({"alpha"}, {"program.py", "textwrap.py"})


def test_choosing_everything_includes_the_standard_library(record):
    own, files = chosen(record(CHOICES, "--lines=all"))
    assert own == OWN and {"program.py", "textwrap.py"} < files


def test_choosing_what_does_not_exist_names_what_is_near(record):
    path = record(CHOICES, "--lines=alhpa")
    notes = [n for n in recordings.report(path)["notes"] if n["kind"] == "lines"]
    assert len(notes) == 1 and "alhpa" in str(notes) and "alpha" in str(notes)


def test_the_decorator_in_builtins(record):
    path = record("""
        @profile
        def chosen(n):
            def inner():
                return n
            return inner()
        def other():
            return 1
        chosen(1); chosen(2); other()
        assert chosen.__name__ == "chosen" and not hasattr(chosen, "__wrapped__")
    """, "--lines=nothing-matches-this")
    assert hits_by_function(path) == {"chosen": {4: 2, 6: 2}, "chosen.<locals>.inner": {5: 2}}
