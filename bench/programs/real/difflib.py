"""Two versions of a module of the standard library compared line by line: a loop over dicts, generators, short calls."""

import difflib
import inspect
import textwrap

OLD = inspect.getsource(textwrap).splitlines()[:120]
NEW = [line.replace("self", "this") for line in OLD[::2]] + OLD[::3]


def work(loops):
    for _ in range(loops):
        list(difflib.ndiff(OLD, NEW))
