"""Writes lsprof_cases.h: what CPython's own cProfile says about random call trees.

Run by hand when cases are to change:  python3 lsprof_cases.py > lsprof_cases.h
Four functions call each other at random, recursion included, on a clock that only they advance, so
the numbers are exact.
"""
import cProfile
import random

clock = 0
events = []


def make(i):
    def work(tree):
        global clock
        events.append((i, clock))
        clock += tree[1]
        for child in tree[2]:
            functions[child[0]](child)
            clock += child[3]
        events.append((-1, clock))

    # A code object of its own, so that cProfile tells the functions apart.
    work.__code__ = work.__code__.replace(co_name="f%d" % i, co_firstlineno=100 + i)
    return work


functions = [make(i) for i in range(4)]


def tree(rng, depth):
    count = rng.choice((0, 1, 1, 2, 3)) if depth else 0
    return (
        rng.randrange(4),
        rng.randrange(1, 20),
        [tree(rng, depth - 1) for _ in range(count)],
        rng.randrange(1, 20),
    )


def number(code):
    return int(code.co_name[1:])


def case(seed):
    global clock
    rng = random.Random(seed)
    clock = 1000
    events.clear()
    profile = cProfile.Profile(lambda: clock, 1.0, subcalls=True, builtins=False)
    tops = [tree(rng, rng.randrange(2, 8)) for _ in range(3)]
    profile.enable()
    for top in tops:
        functions[top[0]](top)
    profile.disable()
    rows, edges = [], []
    for entry in profile.getstats():
        if isinstance(entry.code, str) or not entry.code.co_name.startswith("f"):
            continue
        primitive = entry.callcount - entry.reccallcount
        me = number(entry.code)
        rows.append((me, entry.callcount, primitive, int(entry.inlinetime), int(entry.totaltime)))
        for sub in entry.calls or ():
            if isinstance(sub.code, str) or not sub.code.co_name.startswith("f"):
                continue
            primitive = sub.callcount - sub.reccallcount
            edges.append((me, number(sub.code), sub.callcount, primitive,
                          int(sub.inlinetime), int(sub.totaltime)))
    return list(events), sorted(rows), sorted(edges)


def show(name, lines, width):
    print("static const int64_t %s[][%d] = {" % (name, width))
    for line in lines:
        print("    { %s }," % ", ".join(map(str, line)))
    print("};")


def main():
    print("/* Made by lsprof_cases.py: numbers of CPython's own cProfile. */")
    print("/* clang-format off */")
    for seed in range(6):
        seen, rows, edges = case(seed)
        print("/* enter: function, time; leave: -1, time */")
        show("events_%d" % seed, seen, 2)
        print("/* function, calls, primitive, self, total */")
        show("rows_%d" % seed, rows, 5)
        print("/* caller, callee, calls, primitive, self, total */")
        show("edges_%d" % seed, edges, 6)


main()
