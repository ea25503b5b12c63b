"""Two threads with phases that last as long as is asked for. Says when they were, by CLOCK_MONOTONIC.

The main thread sleeps in load(), save() and load() again; a second one waits for a lock meanwhile."""

import json
import sys
import threading
import time

step = float(sys.argv[1])
done = threading.Event()
phases = []


def load():
    time.sleep(step)


def save():
    time.sleep(step)


def work():
    for phase in (load, save, load):
        begin = time.monotonic_ns()
        phase()
        phases.append([phase.__name__, begin, time.monotonic_ns()])


def wait():
    done.wait()


other = threading.Thread(target=wait, name="waiter")
other.start()
work()
done.set()
other.join()
print(json.dumps(phases))
