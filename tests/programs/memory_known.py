"""Allocates what its test knows, block by block; a mark at the end of a line names the line.

ONE * n is one block of n + 33 bytes, on every Python. What is marked is a statement that allocates
nothing else, or what else it allocates is of the other world (ctypes).
"""

import asyncio
import ctypes
import os
import sys
import threading

libc = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap",
             "mremap"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.free.restype = None
PAGE = os.sysconf("SC_PAGESIZE")
KEPT = [None] * 10_000
ONE = b"1"


def kept():
    for i in range(10):
        KEPT[i] = ONE * 1000  # kept


def at_once():
    for _ in range(7):
        ONE * 2000  # at once


def replaced():
    held = None
    for _ in range(9):
        held = ONE * 2500  # replaced
    return held


def recursion(n):
    size = 100 + n
    KEPT[size] = ONE * size  # recursion
    if n:
        recursion(n - 1)


def generator():
    for _ in range(5):
        yield ONE * 3000  # generator


def consume():
    for i, value in enumerate(generator()):  # consumer
        KEPT[200 + i] = value


def raising(n):
    if n:
        raising(n - 1)
    KEPT[300] = ONE * 3100  # raising
    raise ValueError


def handles():
    try:
        raising(20)
    except ValueError:
        KEPT[301] = ONE * 4000  # handler


def in_thread(number):
    for i in range(4):
        at = 400 + 4 * number + i
        KEPT[at] = ONE * 5000  # thread


def threads():
    for number in range(3):
        thread = threading.Thread(target=in_thread, args=(number,))
        thread.start()
        thread.join()


async def task(number):
    for i in range(3):
        await asyncio.sleep(0)
        at = 500 + 3 * number + i
        KEPT[at] = ONE * 6000  # task


async def tasks():
    await asyncio.gather(*(task(number) for number in range(4)))


def made_code():
    for i in range(20):
        exec(compile(f"\nKEPT[{600 + i}] = ONE * 7000", "<made>", "exec"))  # exec


def deep(n):
    if n:
        deep(n - 1)  # deep caller
    else:
        for i in range(30):
            at = 700 + i
            KEPT[at] = ONE * 8000  # deep


def c_malloc():
    block = libc.malloc(8001)  # malloc
    libc.free(ctypes.c_void_p(block))


def c_calloc():
    KEPT[800] = libc.calloc(3, 1001)  # calloc


def c_realloc():
    block = libc.malloc(1000)
    for bytes_ in range(2000, 6000, 1000):
        block = libc.realloc(ctypes.c_void_p(block), bytes_)  # realloc
    libc.free(ctypes.c_void_p(block))


def c_aligned():
    block = ctypes.c_void_p()
    for _ in range(2):
        assert libc.posix_memalign(ctypes.byref(block), 64, 641) == 0  # posix_memalign
        libc.aligned_alloc(64, 640)  # aligned_alloc
        libc.memalign(128, 643)  # memalign
        libc.valloc(644)  # valloc
        libc.pvalloc(645)  # pvalloc


def map_private(pages):
    return libc.mmap(None, ctypes.c_size_t(pages * PAGE), 3, 0x22, -1, ctypes.c_long(0))  # mmap


def c_mmap():
    whole, parts, moved = map_private(10), map_private(20), map_private(30)
    libc.munmap(ctypes.c_void_p(whole), ctypes.c_size_t(10 * PAGE))
    libc.munmap(ctypes.c_void_p(parts + 5 * PAGE), ctypes.c_size_t(3 * PAGE))  # a hole
    libc.mremap(ctypes.c_void_p(moved), ctypes.c_size_t(30 * PAGE), ctypes.c_size_t(40 * PAGE), 1)  # mremap


def peak():
    highest = ONE * 60_000_000  # peak
    del highest
    KEPT[900] = ONE * 9000  # after


kept()
at_once()
replaced()
recursion(30)
consume()
handles()
threads()
asyncio.run(tasks())
made_code()
deep(400)
c_malloc()
c_calloc()
c_realloc()
c_aligned()
c_mmap()
peak()
sys.stdout.flush()
os._exit(0)
