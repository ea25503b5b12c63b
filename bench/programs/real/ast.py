"""A parsed module of the standard library, written back as source: recursion with many kinds of nodes."""

import ast
import inspect
import textwrap

TREE = ast.parse(inspect.getsource(textwrap))


def work(loops):
    for _ in range(loops):
        ast.unparse(TREE)
