"""Waits for a lock, sleeps and computes, long enough to be sampled."""

import threading
import time

lock = threading.Lock()


def hold():
    with lock:
        time.sleep(0.4)


def want():
    time.sleep(0.05)
    with lock:
        return True


def compute():
    end = time.monotonic() + 0.5
    total = 0
    while time.monotonic() < end:
        total += sum(range(500))
    return total


holder = threading.Thread(target=hold, name='holder')
holder.start()
want()
compute()
holder.join()
