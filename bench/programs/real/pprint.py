"""Pretty printing: short methods, many C calls."""

import pprint

DATA = {"row%d" % i: {"numbers": list(range(i % 7)), "names": ("a" * (i % 40), "b" * 30)} for i in range(40)}


def work(loops):
    for _ in range(loops):
        pprint.pformat(DATA)
