"""Counts are equal to cProfile's, call for call, caller for caller, C calls included.

cProfile is right about single-threaded programs except where two functions share a label (its
dictionary keeps one of them), so the comparison goes by code object, through getstats().
"""

import pytest

COMPARE = """
import cProfile, re

def by_code(entries):
    def name(code):
        if isinstance(code, str):
            return re.sub(" at 0x[0-9a-f]+", "", code)
        return (code.co_filename, code.co_firstlineno, code.co_qualname, hash(code.co_code),
                repr(list(code.co_positions())[:3]))
    def own(code):
        text = code if isinstance(code, str) else code.co_filename
        return "_lsprof" in text or "_agent" in text or text.endswith(("_profile.py", "cProfile.py"))
    table = {}
    for e in entries:
        if own(e.code):
            continue
        row = table.setdefault(name(e.code), [0, 0, {}])
        row[0] += e.callcount
        row[1] += e.reccallcount
        for s in e.calls or ():
            if not own(s.code):
                edge = row[2].setdefault(name(s.code), [0, 0])
                edge[0] += s.callcount
                edge[1] += s.reccallcount
    return table

def compare(work, builtins=True):
    work()
    work()
    tables = []
    for make in (cProfile.Profile, fathom.Profile):
        profiler = make(builtins=builtins)
        profiler.enable(builtins=builtins)
        try:
            work()
        finally:
            profiler.disable()
        tables.append(by_code(profiler.getstats()))
    theirs, ours = tables
    different = [[repr(key), repr(theirs.get(key)), repr(ours.get(key))]
                 for key in set(theirs) | set(ours) if theirs.get(key) != ours.get(key)]
    return [len(theirs), sorted(different)]
"""

WORK = {
    "recursion": """
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
def hanoi(n, a, b, c):
    if n:
        hanoi(n - 1, a, c, b)
        hanoi(n - 1, c, b, a)
def work():
    fib(13); even(30); odd(17); hanoi(6, 1, 2, 3)
""",
    "generators": """
def count(n):
    for i in range(n):
        yield i
def delegate(n):
    yield from count(n)
    return (yield from count(2))
def thrower():
    try:
        yield 1
    except ValueError:
        yield 2
def work():
    sum(count(20)); list(delegate(7)); [x for x in delegate(3)]
    g = thrower(); next(g); g.throw(ValueError()); g.close()
    g = count(5); next(g); del g
    max(x * 2 for x in range(9))
    next(count(1)); all(i < 3 for i in range(10))
""",
    "coroutines": """
import asyncio
async def leaf(n):
    await asyncio.sleep(0)
    return n
async def agen(n):
    for i in range(n):
        yield await leaf(i)
async def main():
    total = 0
    async for x in agen(4):
        total += x
    return total + sum([await leaf(i) for i in range(3)])
def drive(coro):
    try:
        while True:
            coro.send(None)
    except StopIteration as stop:
        return stop.value
def work():
    drive(main())
""",
    "throws": """
def inner():
    try:
        yield 1
    except KeyError:
        yield 2
def middle():
    yield from inner()
def outer():
    try:
        yield from middle()
    except ValueError:
        len("x")
def thrown(*raised):
    g = outer(); next(g)
    try:
        for each in raised: g.throw(each)
    except StopIteration: pass
def work():
    thrown(KeyError()); thrown(ValueError()); thrown(KeyError(), ValueError())
""",
    "c_calls": """
import functools, operator
class L(list):
    def append(self, x):
        super().append(x)
def work():
    l = []
    for i in range(30):
        l.append(i); len(l); abs(-i); str.upper("a"); "a".join("bc")
    sorted(l, key=lambda x: -x); list(map(operator.neg, l)); functools.reduce(operator.add, l)
    try: {}.pop("x")
    except KeyError: pass
    try: int("x")
    except ValueError: pass
    L().append(1); getattr(l, "append")(3); dict.fromkeys("abc"); object.__new__(object)
    print(*[], end="", sep="", file=sys.stderr); len([*range(3)]); max(*l); isinstance(l, L)
    bytes.fromhex("00"); "x".encode().decode(); l.sort(); l.index(3); exec("len([])"); eval("abs(1)")
""",
    "exceptions": """
import contextlib
class Boom(Exception): pass
def raises(n):
    if n: raises(n - 1)
    raise Boom
@contextlib.contextmanager
def manager():
    try:
        yield
    finally:
        len("x")
def work():
    for i in range(4):
        try: raises(i)
        except Boom: pass
    with contextlib.suppress(Boom):
        with manager():
            raises(2)
    try: iter(3)
    except TypeError: pass
""",
    "classes": """
import collections, dataclasses
P = collections.namedtuple("P", "x y")
@dataclasses.dataclass
class D:
    a: int
    b: int = 2
    def both(self): return self.a + self.b
    @property
    def c(self): return self.both()
    @classmethod
    def make(cls): return cls(1)
    @staticmethod
    def nothing(): pass
class Call:
    def __call__(self): return 1
    def __len__(self): return 3
    def __getattr__(self, name): return len(name)
    def __add__(self, o): return self
def work():
    P(1, 2)._replace(x=3); D.make().c; D(1, 3) == D(1, 3); D.nothing(); repr(D(1))
    c = Call(); c(); len(c); c.zzz; c + c; sum([c, c], c)
""",
    "twins": """
def work():
    for f in [lambda: 1, lambda: 2]: f()
    for i in range(3): exec("def h(n):\\n  return n and h(n - 1)\\nh(4)", {})
    exec("def h(n):\\n  return n and h(n - 2)\\nh(6)", {})
""",
    "standard_library": """
import ast, json, re, textwrap, string, decimal, datetime, difflib, csv, io, tokenize, pickle
text = "def f(a, b=3):\\n    return [a + i for i in range(b)]\\n" * 3
def work():
    ast.unparse(ast.parse(text)); json.loads(json.dumps({"a": [1, 2.5, {"b": None}]}, indent=1))
    re.purge(); re.compile(r"(a|b)*c[0-9]+(?P<x>z?)").sub("x", "abc12 abcz"); textwrap.fill("word " * 40)
    string.Template("$a b").substitute(a=1); decimal.Decimal("1.1") ** 3; datetime.date(2020, 1, 1).isoformat()
    list(difflib.ndiff(["a", "b"], ["a", "c"]))
    list(csv.reader(io.StringIO("a,b\\n1,2\\n"))); list(tokenize.generate_tokens(io.StringIO(text).readline))
    pickle.loads(pickle.dumps([1, "a", (2, 3)])); sorted("hello world".split(), key=str.lower)
""",
}


def test_a_builtin_is_named_after_the_class_that_defines_it(inside):
    """Where a subclass overrides the method in Python, cProfile shows the override's address."""
    names = inside("""
class L(list):
    def append(self, x):
        super().append(x)
profiler = fathom.Profile()
profiler.runcall(L().append, 1)
result = [e.code for e in profiler.getstats() if isinstance(e.code, str)]
""")
    assert "<method 'append' of 'list' objects>" in names
    assert not [name for name in names if " at 0x" in name]


@pytest.mark.parametrize("builtins", [True, False], ids=["c-calls", "no-c-calls"])
@pytest.mark.parametrize("name", WORK)
def test_counts_are_equal(inside, name, builtins):
    functions, different = inside(f"{COMPARE}{WORK[name]}\nresult = compare(work, {builtins})")
    assert functions > 1
    assert different == []
