"""Stacks of 20, 200 and 700 functions, by three recursions; what is at their ends has equal shares
by work, and the long ways down and up count for them as well."""

import sys

import oracle

going, now = oracle.going, oracle.now


def near(level, count):
    if level > 1:
        return near(level - 1, count)
    return near_end(count)


def near_end(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def far(level, count):
    if level > 1:
        return far(level - 1, count)
    return far_end(count)


def far_end(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def remote(level, count):
    if level > 1:
        return remote(level - 1, count)
    return remote_end(count)


def remote_end(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        t0 = now()
        near(20, 70 * scale)
        t1 = now()
        far(200, 70 * scale)
        t2 = now()
        remote(700, 70 * scale)
        stamps.extend((t0, t1, t2, now()))


sys.setrecursionlimit(2000)
scales = oracle.scales(20, 60)
log = oracle.log()
oracle.ready([["<module>", "main"] + [name] * depth + [name + "_end"]
              for name, depth in (("near", 20), ("far", 200), ("remote", 700))],
             {"20/200/700": ["near", "far", "remote"]})
main(log)
oracle.done((["near", "far", "remote"], log))
