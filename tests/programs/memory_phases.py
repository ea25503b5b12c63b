"""Known blocks in phases with pauses between them; prints when each phase was over, and its bytes."""

import sys
import time

PAUSE = .4
COUNT = 3000
keep = [None] * COUNT


def first():
    return bytearray(10_000_000)  # first


def second():
    for i in range(COUNT):
        keep[i] = bytes(700 + i)  # second


def over(name, value):
    print(name, time.monotonic(), value, flush=True)
    time.sleep(PAUSE)


over("begin", 0)
a = first()
over("first", sys.getsizeof(a))
second()
over("second", sum(map(sys.getsizeof, keep)))
del a
over("freed", 0)
