"""So many threads, so many of them busy, the others asleep some calls deep, until it is killed."""

import sys
import threading


def busy(level):
    if level:
        return busy(level - 1)
    x = 0
    while True:
        for i in range(1000):
            x = step(x, i)


def step(x, i):
    return (x + i) & 0xFFFF


def asleep(level):
    if level:
        return asleep(level - 1)
    return never.wait()


never = threading.Event()
count, running = int(sys.argv[1]), int(sys.argv[2])
for number in range(1, count):
    threading.Thread(target=busy if number < running else asleep, args=(8,), daemon=True).start()
print("ready", flush=True)
busy(8)
