"""fathom.LineProfiler drops in for line_profiler.LineProfiler; fathom.lines marks and changes nothing."""

import os

import recordings
from conftest import PACKAGE, REPO
from launch import own_run_folders, plain, run  # noqa: F401 (a fixture)

WORK = '''
def work(n):
    total = 0
    for i in range(n):
        total += i
    return total

def hits(profiler):
    """{name: {line, counted from its def: hits}}"""
    return {name: {line - first: n for line, n, time in rows}
            for (file, first, name), rows in profiler.get_stats().timings.items()}
'''


def test_ways_to_record(inside):
    value, found, outside = inside(WORK + """
a = fathom.LineProfiler(work); value = a.runcall(work, 3)
b = fathom.LineProfiler(); b.add_function(work); b.enable(); work(3); b.disable(); work(9)
c = fathom.LineProfiler(work)
with c: work(1)
with c: work(2)
d = fathom.LineProfiler(work); d.runctx("work(n)", {"work": work, "n": 3}, {})
e = fathom.LineProfiler(work); e.run("import __main__; __main__.work(3)")
f = fathom.LineProfiler(work); f.enable_by_count(); f.enable_by_count(); f.disable_by_count()
work(3); f.disable_by_count(); f.disable_by_count(); work(5)
g = fathom.LineProfiler(); wrapped = g(work); work(7); assert wrapped(3) == 3; work(7)
result = [value, [hits(p) for p in (a, b, c, d, e, f, g)], wrapped.__name__]
""")
    assert value == 3
    once = {"work": {"1": 1, "2": 4, "3": 3, "4": 1}}
    assert found == [once, once, {"work": {"1": 2, "2": 5, "3": 3, "4": 2}}, once, once, once, once]
    assert outside == "work"


def test_results_have_the_shape_of_line_profiler(inside):
    result = inside(WORK + """
def never(): pass
p = fathom.LineProfiler(work, never)
before = p.get_stats()
p.runcall(work, 2)
stats = p.get_stats()
(file, first, name), rows = list(stats.timings.items())[0]
result = [file.endswith("inside.py"), first == work.__code__.co_firstlineno, name,
          [type(r).__name__ for r in rows], all(isinstance(x, int) for r in rows for x in r),
          list(stats.timings.values())[1], stats.unit, list(before.timings.values()),
          [f.__name__ for f in p.functions], p.code_map[work.__code__][first + 2]["nhits"]]
""")
    assert result == [True, True, "work", ["tuple"] * 4, True, [], 1e-9, [[], []],
                      ["work", "never"], 3]


def test_every_kind_of_callable_can_be_wrapped(inside):
    found, values, kinds = inside(WORK + """
import asyncio, functools
p = fathom.LineProfiler()
def gen(n):
    for i in range(n):
        got = yield i
    return "end"
async def co(n):
    for i in range(n):
        await asyncio.sleep(0)
    return n
async def agen(n):
    for i in range(n):
        yield i
class C:
    @staticmethod
    def s(a):
        return a
    @classmethod
    def c(cls, a):
        return a
    @property
    def p(self):
        return 1
    @functools.cached_property
    def cp(self):
        return 2
    def m(self):
        return 3
    part = functools.partialmethod(m)
    class D:
        def inner(self):
            return 4
class Call:
    def __call__(self):
        return 5
def base(a, b):
    return a + b
K = p(C); k = K()
g, c, a = p(gen), p(co), p(agen)
def drive():
    result = yield from g(2)
    return result
d = drive(); values = [next(d), d.send(7)]
try: next(d)
except StopIteration as stop: values.append(stop.value)
values.append(asyncio.run(c(2)))
async def main(): return [i async for i in a(3)]
values.append(asyncio.run(main()))
values += [k.s(1), K.s(1), K.c(2), k.p, k.cp, k.cp, k.m(), k.part(), K.D().inner()]
values += [p(Call())(), p(functools.partial(base, 1))(2), p(k.m)(), p(len)("abc")]
kinds = [K is C, isinstance(vars(K)["p"], property), asyncio.iscoroutinefunction(c), p(len) is len,
         p(g) is g]
result = [hits(p), values, kinds]
""")
    assert values == [0, 1, "end", 2, [0, 1, 2], 1, 1, 2, 1, 2, 2, 3, 3, 4, 5, 3, 3, 3]
    assert kinds == [True] * 5
    assert found == {
        "C.s": {"2": 2}, "C.c": {"2": 1}, "C.p": {"2": 1}, "C.cp": {"2": 1}, "C.m": {"1": 3},
        "C.D.inner": {"1": 1}, "gen": {"1": 3, "2": 2, "3": 1}, "co": {"1": 3, "2": 2, "3": 1},
        "agen": {"1": 4, "2": 3}, "Call.__call__": {"1": 1}, "base": {"1": 1}}


def test_wrapped_generators_are_closed_and_thrown_into(inside):
    assert inside(WORK + """
log = []
def gen():
    try:
        while True:
            try:
                yield 1
            except KeyError:
                log.append("thrown")
    finally:
        log.append("closed")
p = fathom.LineProfiler()
g = p(gen)()
next(g), g.throw(KeyError()), g.close()
result = log
""") == ["thrown", "closed"]


def test_classes_and_modules_can_be_added(inside):
    numbers, found = inside(WORK + """
import types
module = types.ModuleType("some.module")
exec('''
from textwrap import dedent
def a():
    return 1
class B:
    def m(self):
        return a()
    class C:
        def n(self):
            return 2
''', module.__dict__)
p = fathom.LineProfiler(); n = p.add_module(module)
with p: module.a(), module.B().m(), module.B.C().n()
q = fathom.LineProfiler(); m = q.add_class(module.B)
with q: module.a(), module.B().m(), module.B.C().n()
r = fathom.LineProfiler(); k = r.add_imported_function_or_module(module.B, wrap=True)
module.a(), module.B().m(); r.disable_by_count()
s = fathom.LineProfiler(); x = s.add_class(module.B, scoping_policy="exact")
result = [[n, m, k, x], [sorted(hits(v)) for v in (p, q, r, s)]]
""")
    assert numbers == [2, 2, 1, 1]
    assert found == [["B.C.n", "B.m", "a"], ["B.C.n", "B.m"], ["B.C.n", "B.m"], ["B.m"]]


def test_functions_inside_an_added_one_come_along(inside):
    assert inside(WORK + """
def outer(n):
    def inner(x):
        return x
    return [inner(i) for i in range(n)] + list(map(lambda v: v, [1, 2]))
p = fathom.LineProfiler(outer); p.runcall(outer, 3)
result = hits(p)
""") == {"outer": {"1": 1, "3": 1}, "outer.<locals>.inner": {"1": 3},
         "outer.<locals>.<lambda>": {"0": 2}}


def test_profilers_nest_and_threads_are_recorded(inside):
    found = inside(WORK + """
import threading
a, b = fathom.LineProfiler(work), fathom.LineProfiler(work)
with a:
    work(1)
    with b: work(2)
c = fathom.LineProfiler(work)
threads = [threading.Thread(target=c.runcall, args=(work, 10)) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
result = [hits(a)["work"], hits(b)["work"], hits(c)["work"], c.enable_count]
""")
    assert found == [{"1": 2, "2": 5, "3": 3, "4": 2}, {"1": 1, "2": 3, "3": 2, "4": 1},
                     {"1": 8, "2": 88, "3": 80, "4": 8}, 0]


def test_many_profilers_take_turns(inside):
    """Only a few can record at one time; one that has to make room loses nothing."""
    assert inside(WORK + """
profilers = [fathom.LineProfiler(work) for _ in range(8)]
for _ in range(2):
    for p in profilers: p.runcall(work, 2)
result = [hits(p) for p in profilers]
""") == [{"work": {"1": 2, "2": 6, "3": 4, "4": 2}}] * 8


def test_files_are_written_and_read(inside, tmp_path):
    same, doubled, refused = inside(WORK + """
p = fathom.LineProfiler(work); p.runcall(work, 2)
stats = p.get_stats()
stats.to_file("same.lprof"); p.dump_stats("out.lprof"); p.dump_stats("out.fathom")
read = fathom.LineStats.from_files("same.lprof")
twice = fathom.LineStats.from_files("out.lprof", "out.lprof")
import os, pickle
class Bad:
    def __reduce__(self): return (os.mkdir, ("made-by-a-file",))
with open("bad.lprof", "wb") as f: pickle.dump(Bad(), f)
try: refused = fathom.LineStats.from_files("bad.lprof")
except ValueError as error: refused = str(error)
result = [read == stats, list(twice.timings.values())[0][1][1], refused]
""")
    assert same is True and doubled == 6
    assert "mkdir" in refused and not (tmp_path / "made-by-a-file").exists()
    for name in ("out.lprof", "out.fathom"):
        function, = recordings.report(tmp_path / name, "--lines")["functions"]
        assert (function["qualname"], [row["hits"] for row in function["lines"] if row["hits"]]) == \
            ("work", [1, 3, 2, 1])


SOURCE = """def work(n):
    total = 0
    for i in range(n):
        total += i   # umlaut: ä
    return total


class Thing:
    @property
    def value(self):
        return 1
"""


def test_tables_are_line_profilers_to_the_byte(inside, tmp_path):
    # golden/line_profiler-tables.txt is what line_profiler 5.1.0 (show_text) makes of these numbers.
    (tmp_path / "work.py").write_text(SOURCE, encoding="utf-8")
    printed = inside("""
import io
stats = fathom.LineStats({
    ("work.py", 1, "work"): [(2, 1, 1234), (3, 1001, 250_000), (4, 1000, 12_345_678_901_234),
                             (5, 1, 90)],
    ("work.py", 9, "Thing.value"): [],
    ("gone.py", 7, "gone"): [(8, 12345678901, 77), (10, 3, 1_000_000)]}, 1e-9)
out = io.StringIO()
for options in ({}, {"output_unit": 1e-6, "stripzeros": True},
                {"details": False, "summarize": True, "sort": True}):
    out.write(f"## {options}\\n")
    stats.print(stream=out, **options)
result = out.getvalue()
""")
    golden = REPO / "tests" / "golden" / "line_profiler-tables.txt"
    assert printed == golden.read_text(encoding="utf-8")


def test_print_stats_prints_to_stdout(python, tmp_path):
    script = tmp_path / "p.py"
    script.write_text("import fathom" + WORK + "p = fathom.LineProfiler(work)\np.runcall(work, 2)\n"
                      "p.print_stats(output_unit=1e-3)\n")
    done = plain(python, script, env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    assert "Timer unit: 0.001 s" in done.stdout and "for i in range(n):" in done.stdout
    assert "Function: work at line 2" in done.stdout


# ---- fathom.lines

MARKED = '''
import functools
import fathom
def same(obj):
    assert fathom.lines(obj) is obj
    return obj
@same
def plain(n):
    def inner():
        return n
    return inner()
@same
async def co(): return 1
@same
def gen():
    yield 1
class C:
    @same
    @staticmethod
    def s():
        return 1
    @same
    @classmethod
    def c(cls):
        return 2
    @same
    @property
    def p(self):
        return 3
    @same
    @functools.cached_property
    def cp(self):
        return 4
    def not_marked(self):
        return 5
@same
class D:
    def m(self):
        return 6
    class E:
        def n(self):
            return 7
@same
@functools.lru_cache
def cached():
    return 8
def base(x):
    return x
part = same(functools.partial(base, 1))
same(len), same(int), same(3), same(None)
plain(1), list(gen()), C.s(), C.c(), C().p, C().cp, C().not_marked(), D().m(), D.E().n(), cached(), part()
try: co().send(None)
except StopIteration: pass
'''


def test_lines_marks_what_is_decorated_under_run(python, tmp_path):
    script = tmp_path / "marked.py"
    script.write_text(MARKED)
    output = tmp_path / "out.fathom"
    done = run("--lines=nothing-matches-this", script, python=python, output=output,
               env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert (done.returncode, done.stderr) == (0, "")
    found = {f["qualname"] for f in recordings.report(output, "--lines")["functions"]}
    assert found == {"plain", "plain.<locals>.inner", "co", "gen", "C.s", "C.c", "C.p", "C.cp", "D.m",
                     "D.E.n", "cached", "base"}


def test_lines_does_nothing_otherwise(python, tmp_path):
    script = tmp_path / "marked.py"
    script.write_text(MARKED + "\nimport sys; print(sys.gettrace(), 'fathom._line_profiler' in sys.modules)\n")
    environment = dict(os.environ, PYTHONPATH=PACKAGE)
    done = plain(python, "-W", "error", script, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None False\n", "")
    output = tmp_path / "calls.fathom"
    done = run("--calls", script, python=python, output=output, env=environment)
    assert (done.returncode, done.stdout) == (0, "None False\n")


def test_lines_needs_no_agent(python, tmp_path):
    """Shipped code may keep the decorator where Fathom has no agent for the interpreter."""
    package = tmp_path / "fathom"
    package.mkdir()
    for name in ("__init__.py", "_lines.py"):
        (package / name).write_text((REPO / "python" / "fathom" / name).read_text())
    done = plain(python, "-c", "import fathom\n@fathom.lines\ndef f(): return 7\nprint(f())",
                 env=dict(os.environ, PYTHONPATH=str(tmp_path)))
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
