"""Calls that are easily counted, in two threads: fetch() four times, of 1, 4, 3 and 2 steps."""

import sys
import threading
import time

step = float(sys.argv[1])


def fetch(times):
    time.sleep(step * times)


def quick():
    pass


def first():
    for _ in range(100):
        quick()
    fetch(1)
    fetch(4)


def second():
    fetch(3)


def work():
    first()
    second()


def other():
    fetch(2)


thread = threading.Thread(target=other, name="other")
work()
thread.start()
thread.join()
