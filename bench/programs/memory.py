"""memory.py PROGRAM LOOPS ANSWER: the programs of the group memory (bench/memory.py)."""

import json
import sys
import threading
import time


def churn():
    for _ in range(30_000):
        bytearray(600)


def tuples():
    table = {}
    for i in range(30_000):
        table[i] = (i, i + 1)


def deep(n=84):
    if n:
        deep(n - 1)
    else:
        for _ in range(30_000):
            bytearray(600)


def down(n):
    held = [n]
    if n:
        down(n - 1)
    return held


def recursion():
    for _ in range(300):
        down(85)


def innermost(i):
    return [i, i]


def middle(i):
    return innermost(i)


def helpers(n=40):
    if n:
        return helpers(n - 1)
    for i in range(30_000):
        middle(i)


TEXT = json.dumps([{"a": i, "b": [1, 2, 3], "c": "x" * 10} for i in range(2000)])


def text():
    for _ in range(3):
        json.dumps(json.loads(TEXT))


def threads():
    workers = [threading.Thread(target=churn) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def fib(n=20):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def arrays():
    import numpy

    a = numpy.ones(10_000)  # less than what glibc maps and unmaps each time
    for _ in range(1000):
        a * 2 + a


def main(name, loops, answer):
    work = {"json": text, "numpy": arrays}.get(name) or globals()[name]
    if name == "numpy":
        import numpy  # noqa: F401 (importing it is not the work)
    start = time.process_time()
    for _ in range(loops):
        work()
    cpu = time.process_time() - start
    with open("/proc/self/status", encoding="utf-8") as status:  # ru_maxrss knows who started us
        rss = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    with open(answer, "w", encoding="utf-8") as out:
        json.dump({"cpu": cpu, "rss": rss}, out)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
