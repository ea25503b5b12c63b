"""Algebra: deep recursion, caches, many small methods."""
# needs: sympy

from _loop import repeat

from sympy import expand, symbols
from sympy.core.cache import clear_cache

x, y, z = symbols("x y z")


def step():
    clear_cache()
    expand((1 + x + y + z) ** 7)
    ((x + y) ** 3 / (x - z)).diff(x)


repeat(step)
