"""Threads that end in the middle of calls, while others are in the same functions and lines."""
import _thread
import ctypes
import os

THREADS, ROUNDS = 20, 200
started = set()
libc = ctypes.CDLL(None)


def work(n):
    total = 0
    for i in range(n):
        total += i
    return total


def end_here():
    work(10)
    libc.pthread_exit(None)  # lets go of the GIL, and never comes back


def in_thread():
    started.add(_thread.get_native_id())
    for _ in range(ROUNDS):
        work(10)
    end_here()


for _ in range(THREADS):
    _thread.start_new_thread(in_thread, ())
while len(started) < THREADS or started & {int(name) for name in os.listdir("/proc/self/task")}:
    sum(range(1000))
work(10)
print("all have ended")
