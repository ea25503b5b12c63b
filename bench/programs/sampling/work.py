"""A fixed amount of work for each line on standard input; prints its wall and CPU seconds. As much
work as takes about SECONDS here: calls, loops and allocation mixed."""

import sys
import time


def leaf(x):
    return x * 3 & 0xFFFF


def branch(x):
    return leaf(x) + leaf(x + 1)


def work(loops):
    total, table = 0, {}
    for i in range(loops):
        total += branch(i)
        table[i & 255] = [total]
    return total


seconds = float(sys.argv[1])
start = time.perf_counter()
work(200_000)
loops = int(200_000 * seconds / (time.perf_counter() - start))
print("ready", flush=True)
for _ in sys.stdin:
    start, cpu = time.perf_counter(), time.process_time()
    work(loops)
    print(time.perf_counter() - start, time.process_time() - cpu, flush=True)
