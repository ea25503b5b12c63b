"""Calls of every kind, a known number of each, in the main thread, in children by fork, and, with "threads" as argument, on
three threads one after the other."""
import asyncio
import os
import sys
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(n):
    for i in range(n):
        yield i


def boom(depth):
    if depth == 0:
        raise ValueError(depth)
    boom(depth - 1)


async def leaf(n):
    await asyncio.sleep(0)
    return n


async def main():
    return sum(await asyncio.gather(*(leaf(i) for i in range(20))))


def work(times):
    for _ in range(times):
        sum(numbers(20))
        fib(8)
        try:
            boom(5)
        except ValueError:
            pass


def child(times, end):
    pid = os.fork()
    if pid == 0:
        work(times)
        end()
    return os.waitpid(pid, 0)[1] >> 8


if __name__ == "__main__":
    for number in range(3 if sys.argv[1:] else 0):
        thread = threading.Thread(target=work, args=(10 + number,), name=f"worker-{number}")
        thread.start()
        thread.join()
    work(100)
    print(asyncio.run(main()), flush=True)
    print(child(30, lambda: os._exit(3)), child(7, lambda: sys.exit(4)))
    unfinished = numbers(5)
    next(unfinished)
    del unfinished
