"""Values in a trace: arguments and results of chosen functions, variables at lines, names of imported modules.

What must be told follows from the programs; objects that would end them if they were asked are not asked."""

from __future__ import annotations

import json
import textwrap

import pytest

from launch import own_run_folders, run  # noqa: F401 (a fixture)
from pstats_tools import fails, fathom, report, table


@pytest.fixture
def traced(python, tmp_path):
    """Record a program, give its events as Chrome has them."""
    def call(code, *options, args=()):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(code), encoding="utf-8", errors="surrogatepass")
        recording = tmp_path / "out.fathom"
        done = run("--trace", "--force", *options, str(program), *args, python=python, output=recording, collectors=())
        done.recording = recording
        done.events = export(recording, tmp_path / "out.json")
        return done

    return call


def export(recording, into):
    done = fathom("convert", "--to", "chrome", "--force", recording, "-o", into)
    assert done.returncode == 0, done.stderr
    return json.loads(into.read_text())["traceEvents"]


def calls(events, name):
    """What is known of each call of the function, in order of their ends."""
    open_calls, ended = [], []
    for event in events:
        if event["ph"] == "B":
            open_calls.append((event["name"], dict(event.get("args", {}))))
        elif event["ph"] == "E":
            called, values = open_calls.pop()
            values.update({k: v for k, v in event.get("args", {}).items() if k != "raised"})
            if called.startswith(name + " ("):
                ended.append(values)
    assert not open_calls
    return ended


def variables(events):
    """(name, value) of what was watched, in order of time."""
    told = [(e["ts"], e["name"], e["args"]["value"]) for e in events if e.get("cat") in ("counter", "variable")]
    return [row[1:] for row in sorted(told, key=lambda row: row[0])]


# ---- arguments and results


def test_plain_values_are_told_as_they_are(traced):
    done = traced("""
        def f(a, b, c, d, e, g): return a
        f(1, -2.5, None, True, "x'y", b"z\\x00")
        f(2**63, 10**30, float("inf"), False, "é€😀", bytearray(b"ab"))
        f(2**2000, -2**600, [1, 2], {}, {1, 2, 3}, (None,))
    """, "--args", "f", "--returns", "f")
    assert calls(done.events, "f") == [
        {"a": "1", "b": "-2.5", "c": "None", "d": "True", "e": "'x\\'y'", "g": "b'z\\x00'", "return": "1"},
        {"a": "9223372036854775808", "b": "1" + "0" * 30, "c": "inf", "d": "False", "e": "'é€😀'",
         "g": "bytearray 'ab'", "return": "9223372036854775808"},
        {"a": "int of 2001 bits", "b": "int of 601 bits", "c": "list of 2", "d": "dict of 0", "e": "set of 3",
         "g": "tuple of 1", "return": "int of 2001 bits"},
    ]


def test_only_chosen_functions_have_values(traced):
    done = traced("""
        def f(a): return g(a)
        def g(a): return a
        class C:
            def method(self, n): return n
        f(1); C().method(2)
    """, "--args", "g", "--returns", "C")
    assert calls(done.events, "f") == [{}]
    assert calls(done.events, "g") == [{"a": "1"}]
    assert calls(done.events, "C.method") == [{"return": "2"}]


def test_no_code_of_the_program_runs(traced):
    done = traced("""
        import sys
        class Loud:
            def die(self, *a): sys.exit("asked")
            __repr__ = __str__ = __len__ = __bool__ = __hash__ = __eq__ = __int__ = __float__ = __index__ = die
            __class__ = property(die)
            def __getattribute__(self, name): sys.exit("asked")
        def wrap(base):
            class Sub(base):
                def die(self, *a): sys.exit("asked")
                __repr__ = __str__ = __len__ = __bool__ = __iter__ = __int__ = __float__ = __format__ = die
                def __getattribute__(self, name): sys.exit("asked")
            return Sub
        class Meta(type):
            def __repr__(cls): sys.exit("asked")
        class Strange(metaclass=Meta): pass
        def f(a, *rest, **named): return a
        f(Loud(), wrap(int)(7), wrap(float)(0.5), wrap(str)("s"), wrap(bytes)(b"b"), x=wrap(list)([1]), y=wrap(dict)(a=1))
        f(Strange, Strange(), f, len, wrap(set)([1, 2]))
    """, "--args", "f", "--returns", "f")
    assert done.returncode == 0 and "asked" not in done.stderr
    assert calls(done.events, "f") == [
        {"a": "<Loud>", "rest": "(7, 0.5, 's', b'b')", "named": "{x=Sub of 1, y=Sub of 1}", "return": "<Loud>"},
        {"a": "class Strange", "rest": "(<Strange>, function f, <builtin_function_or_method>, Sub of 2)", "named": "{}",
         "return": "class Strange"},
    ]


def test_long_values_are_cut(traced):
    done = traced("""
        def f(text, data, wide, rest, *many): return text
        f("x" * 5_000_000, b"y" * 1000, "€" * 100, "\\ud800\\n\\x1b", *range(100))
    """, "--args", "f", "--returns", "f")
    (values,) = calls(done.events, "f")
    assert all(len(value.encode()) <= 200 for value in values.values())
    assert values["text"].startswith("'xxx") and values["text"].endswith("x…' (5000000)")
    assert values["return"] == values["text"]
    assert values["data"].startswith("b'yyy") and values["data"].endswith("y…' (1000)")
    assert values["wide"].startswith("'€€") and values["wide"].endswith("€…' (100)")
    assert values["rest"] == "'\\ud800\\n\\x1b'"
    assert values["many"].startswith("(0, 1, 2, 3, ") and values["many"].endswith("…")


def test_many_arguments(traced):
    names = [f"a{i}" for i in range(40)]
    done = traced(f"""
        def f({", ".join(names)}): pass
        f(*range(40))
    """, "--args", "f")
    assert calls(done.events, "f") == [{name: str(i) for i, name in enumerate(names[:16])}]


def test_kinds_of_arguments_and_cells(traced):
    done = traced("""
        def f(p, /, q, *rest, k=5, **named):
            def inner(): return p, rest
            p = inner
            return k
        f(1, 2, 3, 4, z=6)
        def cells(cell):
            def inner(): return cell
            return inner.__closure__[0]
        f(cells(9), q=cells(8))
    """, "--args", "f", "--returns", "f")
    assert calls(done.events, "f") == [
        {"p": "1", "q": "2", "k": "5", "rest": "(3, 4)", "named": "{z=6}", "return": "5"},
        {"p": "<cell>", "q": "<cell>", "k": "5", "rest": "()", "named": "{}", "return": "5"}]


def test_without_c_calls(traced):
    """3.11 has another way to hear of calls then."""
    done = traced("""
        def f(p, q):
            def inner(): return p
            return inner()
        f(1, q="x")
        def g(n):
            yield n
        list(g(3))
    """, "--no-c-calls", "--args", "f,g", "--returns", "f,g", "--watch", "program.py:4:q")
    assert calls(done.events, "f") == [{"p": "1", "q": "'x'", "return": "1"}]
    assert calls(done.events, "g") == [{"n": "3", "yield": "3"}, {"return": "None"}]
    assert variables(done.events) == [("q (program.py:4)", "'x'")]


def test_generators_and_coroutines(traced):
    done = traced("""
        import asyncio
        def numbers(n):
            got = yield n
            yield got
            return "end"
        g = numbers(1); next(g); g.send(2); list(g)
        async def work(n):
            await asyncio.sleep(0)
            return n * 2
        asyncio.run(work(4))
        async def stream(n):
            yield n
        async def main():
            return [x async for x in stream(5)]
        asyncio.run(main())
    """, "--args", "numbers,work,stream", "--returns", "numbers,work,main")
    assert calls(done.events, "numbers") == [{"n": "1", "yield": "1"}, {"yield": "2"}, {"return": "'end'"}]
    assert calls(done.events, "work") == [{"n": "4"}, {"return": "8"}]
    assert {"n": "5"} in calls(done.events, "stream")
    assert calls(done.events, "main")[-1] == {"return": "list of 1"}


def test_exceptions_recursion_and_depth(traced):
    done = traced("""
        def f(n):
            if n == 0: raise KeyError(n)
            return f(n - 1)
        try: f(3)
        except KeyError: print("caught")
    """, "--args", "f", "--returns", "f", "--max-depth", "3")
    assert done.stdout == "caught\n"
    assert calls(done.events, "f") == [{"n": "2"}, {"n": "3"}]


def test_short_calls_with_values_are_kept(traced):
    done = traced("""
        def f(n): return n
        def g(n): return n
        for i in range(3): f(i); g(i)
    """, "--args", "f", "--min-duration", "10s")
    assert calls(done.events, "f") == [{"n": "0"}, {"n": "1"}, {"n": "2"}]
    assert calls(done.events, "g") == []


def test_threads_and_children_have_their_own(traced, tmp_path):
    done = traced("""
        import os, threading
        def f(who, n): return n
        def loop(who):
            for i in range(1000): f(who, i)
        threads = [threading.Thread(target=loop, args=(name,)) for name in "ab"]
        for t in threads: t.start()
        for t in threads: t.join()
        pid = os.fork()
        if pid == 0:
            f("child", -1); os._exit(0)
        os.waitpid(pid, 0)
    """, "--args", "f", "--returns", "f")
    by_thread = {}
    for event in done.events:
        if event["ph"] in "BE":
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    told = {}
    for events in by_thread.values():
        for values in ended(events, "f"):
            assert values["n"] == values["return"]
            told.setdefault(values["who"], []).append(int(values["n"]))
    assert told == {"'a'": list(range(1000)), "'b'": list(range(1000)), "'child'": [-1]}


def ended(events, name):
    """As calls(); what was open when its process ended is left out."""
    depth = sum(1 if e["ph"] == "B" else -1 for e in events)
    return calls(events + [{"ph": "E"}] * depth, name)


# ---- repr


def test_repr_is_asked_only_if_wanted(traced):
    code = """
        class P:
            def __init__(self, x): self.x = x
            def __repr__(self): return f"P({self.x})"
        def f(p, q): return p
        f(P(1), [P(2), {"a": 1}])
    """
    done = traced(code, "--args", "f", "--returns", "f")
    assert calls(done.events, "f") == [{"p": "<P>", "q": "list of 2", "return": "<P>"}]
    done = traced(code, "--args", "f", "--returns", "f", "--repr")
    assert calls(done.events, "f") == [{"p": "P(1)", "q": "[P(2), {'a': 1}]", "return": "P(1)"}]


def test_repr_that_misbehaves_changes_nothing(traced, python, tmp_path):
    code = """
        import sys, errno, ctypes
        class Raises:
            def __repr__(self): raise SystemExit(3)
        class Recurses:
            def __repr__(self): return repr(self)
        class Calls:
            def __repr__(self): return str(f(self, 1))
        class Long:
            def __repr__(self): return "r" * 10_000_000
        class Wrong:
            def __repr__(self): return 5
        class Odd:
            def __repr__(self): return "\\udfff\\x00\\n"
        class Handles:
            def __repr__(self):
                try: raise KeyError
                except KeyError: return "handled"
        def f(a, b): return 7
        try:
            raise ValueError("mine")
        except ValueError:
            for kind in (Raises, Recurses, Calls, Long, Wrong, Odd, Handles):
                f(kind(), 0)
            assert sys.exc_info()[0] is ValueError
        print("fine")
    """
    done = traced(code, "--args", "f", "--repr")
    assert done.returncode == 0 and done.stdout == "fine\n" and done.stderr == ""
    values = [row["a"] for row in calls(done.events, "f") if row.get("b") == "0"]
    assert values[:2] == ["<Raises>", "<Recurses>"] and values[2] == "7"
    assert values[3].startswith("rrr") and values[3].endswith("r…") and len(values[3].encode()) <= 200
    assert values[4:] == ["<Wrong>", "\\udfff\\x00\\n", "handled"]


# ---- variables at lines


def test_variables_at_lines(traced):
    done = traced("""
        limit = 3
        def f(n):
            total = 0
            for i in range(n):
                total += i
            del i
            name = "s"
            return total
        f(limit)
        f(0) if False else f(1)
    """, "--watch", "program.py:6:total", "--watch", "program.py:8:i", "--watch", "*/program.py:9:name",
        "--watch", "program.py:9:limit", "--watch", "program.py:9:nothing")
    again = [("i (program.py:8)", "not bound"), ("name (program.py:9)", "'s'"), ("limit (program.py:9)", 3),
             ("nothing (program.py:9)", "not bound")]
    assert variables(done.events) == [
        ("total (program.py:6)", 0), ("total (program.py:6)", 0), ("total (program.py:6)", 1), *again,
        ("total (program.py:6)", 0), *again]


def test_variables_of_modules_classes_closures_and_generators(traced):
    done = traced("""
        x = 1
        x = x + 1
        class C:
            y = 2.5
            z = y
        def outer():
            shared = 10
            def inner():
                return shared
            shared = 11
            return inner()
        outer()
        def g():
            k = True
            yield k
            k = [1]
            yield k
        list(g())
    """, "--watch", "program.py:3:x", "--watch", "program.py:6:y", "--watch", "program.py:10:shared",
        "--watch", "program.py:12:shared", "--watch", "program.py:16:k", "--watch", "program.py:18:k")
    assert variables(done.events) == [
        ("x (program.py:3)", 1), ("y (program.py:6)", 2.5), ("shared (program.py:12)", 11),
        ("shared (program.py:10)", 11), ("k (program.py:16)", 1), ("k (program.py:18)", "list of 1")]


def test_code_that_is_compiled_again_is_watched_again(traced):
    done = traced("""
        source = "def f(n):\\n    m = n * 2\\n    return m\\n"
        for n in range(3):
            space = {}
            exec(compile(source, "made.py", "exec"), space)
            space["f"](n)
    """, "--watch", "made.py:3:m")
    assert variables(done.events) == [("m (made.py:3)", 0), ("m (made.py:3)", 2), ("m (made.py:3)", 4)]


def test_the_programs_own_tracer_is_left_alone(traced):
    done = traced("""
        import sys
        lines = []
        def tracer(frame, event, arg):
            if event == "line": lines.append(frame.f_lineno)
            return tracer
        def f():
            a = 1
            return a
        sys.settrace(tracer); f(); sys.settrace(None)
        print(lines)
    """, "--watch", "program.py:9:a", "--args", "f", "--returns", "f")
    assert done.stdout == "[8, 9]\n"
    assert variables(done.events) == [("a (program.py:9)", 1)]


# ---- bounds


def test_more_than_a_mebibyte_a_second_is_left_out_and_counted(traced):
    done = traced("""
        import time
        def f(text): pass
        text, since = "x" * 1000, time.monotonic()
        for i in range(100_000): f(text)
        print(time.monotonic() - since)
    """, "--args", "f", "--no-c-calls")
    told = calls(done.events, "f")
    assert len(told) == 100_000, "the calls are all there"
    kept = [values["text"] for values in told if "text" in values]
    a_second = 2**20 // (len(kept[0].encode()) + 16)
    lost = [note for note in table(done.recording)["notes"] if "values of calls" in note["text"]]
    assert a_second <= len(kept) <= a_second * (float(done.stdout) + 1)
    assert [note["count"] for note in lost] == [100_000 - len(kept)]


# ---- what it costs


def added_ns(done):
    return json.loads(fathom("report", "--json", "-n", "1", done.recording).stdout)["added_ns"]


def test_what_repr_takes_is_what_fathom_added(traced):
    # The program reads the clock of its processor in each repr().
    done = traced("""
        import time
        spent = 0
        class Slow:
            def __repr__(self):
                global spent
                begin = time.thread_time()
                while time.thread_time() - begin < 0.002: pass
                spent += time.thread_time() - begin
                return "slow"
        def f(slow): pass
        for _ in range(100): f(Slow())
        print(spent)
    """, "--no-c-calls", "--args", "f", "--repr")
    spent_ns = float(done.stdout) * 1e9
    assert spent_ns >= 100 * 0.002e9
    assert 0.99 * spent_ns <= added_ns(done) < 1.5 * spent_ns


@pytest.mark.parametrize("options", [["--args", "f"], ["--returns", "f"], ["--watch", "program.py:4:text"]])
def test_what_values_take_is_what_fathom_added(traced, options):
    # Each call has a text of which every character takes its time to be told, and does nothing else.
    code = """
        import time
        def f(text):
            return text
        begin = time.thread_time()
        for _ in range(100_000): f("\\n\u20ac" * 200)
        print(time.thread_time() - begin)
    """
    plain_ns = added_ns(traced(code, "--no-c-calls"))
    told = traced(code, "--no-c-calls", *options)
    spent_ns = float(told.stdout) * 1e9
    assert plain_ns < spent_ns / 2 < added_ns(told) < 1.5 * spent_ns


# ---- imports


def test_imports_have_the_name_of_the_module(traced, tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from . import part\n")
    (package / "part.py").write_text("import no_such_module_of_mine\n")
    done = traced("""
        try: import pack
        except ImportError: pass
        import pack.part as p
    """.replace("import pack.part as p", "pass"))
    names, nested = [], []
    stack = []
    for event in done.events:
        if event["ph"] == "B":
            stack.append(event["name"])
            if event["cat"] == "region":
                names.append(event["name"])
                nested.append(sum(name.startswith("import ") for name in stack))
                assert stack[-2].startswith("_find_and_load ")
        elif event["ph"] == "E":
            stack.pop()
    mine = [(name, depth) for name, depth in zip(names, nested) if "pack" in name or "mine" in name]
    assert mine == [("import pack", 1), ("import pack.part", 2), ("import no_such_module_of_mine", 3)]


# ---- reports


def test_the_slowest_call_has_its_values(traced):
    done = traced("""
        import time
        def f(n):
            time.sleep(n / 100)
            return n * 2
        f(1); f(10); f(2)
    """, "--args", "f", "--returns", "f")
    rows = table("--slowest", "f", done.recording)["slowest"]
    assert rows[0]["values"] == {"n": "10", "return": "20"}
    text = report("--slowest", "f", done.recording)
    assert "n=10 → 20" in text.splitlines()[[i for i, l in enumerate(text.splitlines()) if "took" in l][0] + 1]
    assert "n=10 → 20" in report("--slowest", "f", "--csv", done.recording).splitlines()[1]


# ---- what is refused


@pytest.mark.parametrize("options", [
    ["--args", "f"], ["--returns", "f"], ["--watch", "a.py:1:x"], ["--repr"], ["--trace", "--repr"],
    ["--trace", "--args", ""], ["--trace", "--watch", "a.py:x"], ["--trace", "--watch", "a.py:0:x"],
    ["--trace", "--watch", "a.py:1:x.y"], ["--trace", "--watch", ":1:x"], ["--trace", "--watch", "a.py:1:"],
    ["--trace", *["--watch", "a.py:1:x"] * 33],
])
def test_bad_options(options, tmp_path):
    assert "Try `fathom run --help`" in fails(2, "run", *options, "-o", tmp_path / "out.fathom", "true")
