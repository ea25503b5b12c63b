"""Profiles that come and go while threads start and end, code is made and dropped, and the process
forks. Prints "ok" at the end; what it proves is that nothing crashes or hangs on the way."""

import gc
import os
import random
import threading

import fathom


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def gen(n):
    for i in range(n):
        yield fib(i % 7)


def churn(seed):
    r = random.Random(seed)
    for i in range(25):
        scope = {}
        exec(f"def f{i % 5}(x): return x + {r.randrange(50)}", scope)
        scope[f"f{i % 5}"](1)
        list(gen(r.randrange(12)))
        try:
            {}.pop(1)
        except KeyError:
            pass


def background(k, stop):
    i = 0
    while not stop.is_set():
        churn(k * 1000 + i)
        i += 1


def in_threads():
    threads = [threading.Thread(target=churn, args=(9,)) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def one_round(number):
    profiles = [fathom.Profile(builtins=bool(number % 3)) for _ in range(3)]
    for p in profiles:
        p.enable()
        churn(number)
    in_threads()
    for p in profiles:
        p.snapshot_stats()
        p.disable()
    if number % 2 == 0:
        pid = os.fork()
        if pid == 0:
            churn(1)
            os._exit(0)
        os.waitpid(pid, 0)
    profiles[0].clear()
    profiles[0].enable()
    churn(2)
    profiles[0].disable()
    for p in profiles:
        p.create_stats()
        p.getstats()
    del profiles
    gc.collect()


def main():
    stop = threading.Event()
    threads = [threading.Thread(target=background, args=(k, stop)) for k in range(3)]
    for t in threads:
        t.start()
    for number in range(6):
        one_round(number)
    stop.set()
    for t in threads:
        t.join()
    print("ok")


main()
