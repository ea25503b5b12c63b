"""Code objects of all kinds, and what this Python says about each of their instructions."""

import argparse
import ast
import collections
import dis
import inspect
import json.decoder
import sys
import types
import typing

from told import begin, hexed, wait

begin()

def positions(code):
    """One per two bytes of bytecode: line, end line, column, end column, counted from 1."""
    if sys.version_info >= (3, 11):
        for line, end_line, column, end_column in code.co_positions():
            yield (line or 0, end_line or 0, 0 if column is None else column + 1,
                   0 if end_column is None else end_column + 1)
        return
    if sys.version_info >= (3, 10):
        ranges = [(s, e, line or 0) for s, e, line in code.co_lines()]
    else:
        starts = list(dis.findlinestarts(code)) + [(len(code.co_code), 0)]
        ranges = [(s, e, line) for (s, line), (e, _) in zip(starts, starts[1:])]
    for start, end, line in ranges:
        for _ in range(start, end, 2):
            yield line, line, 0, 0
def nested(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from nested(const)

sources = [(module.__file__, open(module.__file__, encoding="utf-8").read())
           for module in (argparse, ast, collections, dis, inspect, json.decoder, typing)]
sources += [
    ("d\u00e9j\u00e0.py", "def na\u00efve(): return [\u00e9 for \u00e9 in 'a']\n"),
    ("\u0444\u0430\u0439\u043b.py", "class \u0416:\n def \u4e2d(self): pass\n"),
    ("balloon \U0001f388", "def f():\n  '\U0001f388'; return len('\U0001f388')\n"),
    ("undecodable \udc80.py", "1\n"), ("", "lambda: 1\n"),
    ("x" * 3000, "pass\n"), ("\u0416" * 1500, "pass\n"), ("\U0001f388" * 600, "pass\n"),
    ("far apart", "x = (1" + "\n" * 5000 + ", f(2)" + " " * 5000 + "(3))\n" + "\n" * 300
     + "def g():\n" + " x = 1\n" * 300 + " return x\n"),
    ("wide", "x = [" + ", ".join("f(a.b[%d])" % i for i in range(300)) + "]\n"),
    ("branches", """
def g(a):
    try:
        with a as b, b as c:
            for i in c:
                if i: continue
                elif b: break
            else:
                return (a
                        + b
                        - c)
    except (KeyError,
            ValueError) as e:
        raise e from None
    finally:
        del a
    while True:
        assert a, (
            b)
    async def h():
        async with a as b:
            async for c in b: yield await c
    return f"{a!r:>{b}}" f"{c}", {**a}, [*b], lambda *q, z=1: (yield)
"""),
]
class Name(str): pass
codes = [c for name, source in sources for c in nested(compile(source, name, "exec"))]
# Names that no compiler makes.
codes.append(codes[-1].replace(co_filename=Name("subclass.py"), co_name=Name("subclass")))
codes.append(codes[-1].replace(co_filename="nul \0 inside", co_name="\ud800 \udfff"))
with open("expected", "w") as out, open("codes", "w") as addresses:
    for c in codes:
        print("%x" % id(c), file=addresses)
        print("code", hexed(c.co_name), hexed(getattr(c, "co_qualname", c.co_name)),
              hexed(c.co_filename), c.co_firstlineno, c.co_flags, len(c.co_code), file=out)
        for position in positions(c):
            print(*position, file=out)
wait("written", len(codes))
