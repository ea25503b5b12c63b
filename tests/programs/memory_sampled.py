"""Allocates what tests/behaviour/test_memory_sampled.py knows: each marked line in one way."""

import ctypes
import mmap
import os
import sys
import threading

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def small():
    return [bytes(200) for _ in range(20_000)]  # small


def middling():
    return [bytes(10_000) for _ in range(400)]  # middling


def large():
    return [bytes(3_000_000) for _ in range(3)]  # large


def freed():
    for _ in range(40_000):
        bytes(400)  # freed


def at_peak():
    return [bytes(1000) for _ in range(20_000)]  # peak


def of_c():
    return [libc.malloc(3000) for _ in range(2000)]  # malloc


def grown():
    for _ in range(300):
        block = None
        for size in (10_000, 20_000, 30_000):
            block = libc.realloc(block, size)  # realloc
        libc.free(block)


def in_thread(kept):
    kept.append([bytes(500) for _ in range(8_000)])  # thread


def mapped():
    return [mmap.mmap(-1, 5 << 20, flags=mmap.MAP_PRIVATE) for _ in range(2)]  # mmap


def child(kept):
    kept.clear()
    return [bytes(700) for _ in range(8_000)]  # child


kept = [small(), middling(), large(), mapped()]
thread = threading.Thread(target=in_thread, args=(kept,))
thread.start()
thread.join()
freed()
of_c()
grown()
most = at_peak()
del most
if "fork" in sys.argv:
    pid = os.fork()
    if not pid:
        born = child(kept)
        os._exit(0)
    os.waitpid(pid, 0)
sys.stdout.flush()
os._exit(0)
