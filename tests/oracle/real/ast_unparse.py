"""Trees: walked by generators, visited by methods that are looked up by name, written out again."""

import ast
import textwrap

from _loop import repeat

with open(textwrap.__file__, encoding="utf-8") as file:
    tree = ast.parse(file.read())


def step():
    sum(isinstance(node, ast.Name) for node in ast.walk(tree))
    ast.unparse(tree)
    ast.dump(tree)


repeat(step)
