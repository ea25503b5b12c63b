"""Calls whose arguments, results and variables are known."""
import time


def handle(path, size, *rest):
    total = 0
    for i in range(size):
        time.sleep(0.002)
        total += i
    name = path
    return {path: total}


for n in range(1, 5):
    handle(f"/page/{n}", n, None)
