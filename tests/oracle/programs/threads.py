"""Eight threads that fight for the GIL. Each has functions of its own, so that a stack which mixes two
threads shows; in each, by its own clock, some 70 % of the time goes into one function and 30 % into
another, waiting for the GIL included."""

import os
import threading

import oracle

now, wait = oracle.now, os.read
stop = []

COUNT = 8
SOURCE = """
def heavy_{k}(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def light_{k}(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def worker_{k}(stamps, scales):
    for scale in scales:
        if stop:
            return
        start = now()
        heavy_{k}(70 * scale)
        middle = now()
        light_{k}(30 * scale)
        stamps.extend((start, middle, now()))
"""


def main():
    for thread in threads:
        thread.start()
    oracle.ready([["~", f"worker_{k}", f"{part}_{k}"] for k in range(COUNT)
                  for part in ("heavy", "light")] + [["<module>", "main", "~"]],
                 {f"thread {k}": [f"heavy_{k}", f"light_{k}"] for k in range(COUNT)})
    wait(0, 1)
    stop.append(True)
    for thread in threads:
        thread.join()


names = {"stop": stop, "now": now}
exec(compile("".join(SOURCE.format(k=k) for k in range(COUNT)), "workers.py", "exec"), names)
logs = [oracle.log() for _ in range(COUNT)]
threads = [threading.Thread(target=names[f"worker_{k}"], args=(logs[k], oracle.scales()))
           for k in range(COUNT)]
main()
oracle.done(*(([f"heavy_{k}", f"light_{k}"], logs[k]) for k in range(COUNT)))
