"""Differences between texts: generators that call generators, and long loops in plain functions."""

import difflib

from _loop import repeat

old = [f"line {i * 7 % 50} of the text {i}\n" for i in range(80)]
new = [line.replace("3", "x") for line in old if "9" not in line]


def step():
    list(difflib.unified_diff(old, new))
    list(difflib.ndiff(old[:12], new[:12]))


repeat(step)
