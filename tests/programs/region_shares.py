"""Regions of every kind, each with the time that it took by the program's own clock, in seconds: a line of JSON at the end. Where a
region's time goes is told by path: {"nested/step/solve/turn": seconds}. Turns for as long as the first argument says."""

import asyncio
import contextlib
import json
import sys
import threading
import time

import fathom

SECONDS = float(sys.argv[1])
took = {}


def turn(path, share):
    """Turn for a share of the time; it is told as the time of that path."""
    begin = time.perf_counter()
    end, used = begin + SECONDS * share, time.thread_time() + SECONDS * share / 4
    while time.perf_counter() < end or time.thread_time() < used:
        pass
    took[path] = took.get(path, 0) + time.perf_counter() - begin


def assemble():
    turn("nested/step/assemble/turn", 0.1)


def solve():
    with fathom.region("solve"):
        turn("nested/step/solve/solve/turn", 0.2)
        with fathom.region("inner"):
            turn("nested/step/solve/solve/inner/turn", 0.1)


def nested():
    with fathom.region("step"):  # spans several functions
        assemble()
        solve()
    turn("nested/turn", 0.1)


def produce():
    with fathom.region("produce"):
        for _ in range(5):
            turn("generators/produce/produce/turn", 0.03)
            yield


def generators():
    for _ in produce():
        with fathom.region("consume"):
            turn("generators/consume/turn", 0.02)


async def request():
    with fathom.region("request"):
        for _ in range(5):
            turn("request/request/turn", 0.03)
            await asyncio.sleep(0)


async def other():
    for _ in range(5):
        turn("other/turn", 0.03)
        await asyncio.sleep(0)


async def tasks():
    await asyncio.gather(request(), other())


@contextlib.contextmanager
def phase(name):
    with fathom.region(name):
        yield


def managers():
    with phase("managed"):
        turn("managers/managed/turn", 0.1)


def overlap():
    first, second = fathom.region("first"), fathom.region("second")
    first.__enter__()
    second.__enter__()
    turn("overlap/first/second/turn", 0.1)
    first.__exit__(None, None, None)
    turn("overlap/second/turn", 0.1)
    second.__exit__(None, None, None)


def left_open():
    region = fathom.region("left open")
    region.__enter__()
    turn("returned/left_open/left open/turn", 0.1)
    return region


def returned():
    region = left_open()
    turn("returned/turn", 0.1)  # its call is over, and it is in no other
    region.__exit__(None, None, None)


def many():
    for _ in range(3000):  # more than are kept as marks: visits end another way then
        with fathom.region("many"):
            pass
    turn("many/turn", 0.1)
    with fathom.region("many"):
        turn("many/many/turn", 0.1)
    turn("many/turn", 0.1)


def of(name):
    with fathom.region(name):
        turn(f"of/{name}/turn", 0.2)


def threads():
    """Two threads, each in a region of its own."""
    both = [threading.Thread(target=of, args=(name,), name=name) for name in ("first", "second")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


for what in sys.argv[2:]:
    asyncio.run(tasks()) if what == "tasks" else globals()[what]()
print(json.dumps(took))
