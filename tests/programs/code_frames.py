"""Stops in calls of all kinds, after writing down the stacks as this Python shows them."""

import asyncio
import functools
import gc
import sys
import threading
import time

from told import begin, hexed, wait

begin()
gc.disable()  # it would run __del__, which stops too, while a stack is written down
armed = False
def describe(frame):
    while frame:
        code, line = frame.f_code, frame.f_lineno
        place = line, line, 0, 0
        if sys.version_info >= (3, 11):
            place = list(code.co_positions())[frame.f_lasti // 2]
            place = [place[0] or 0, place[1] or 0, *(0 if p is None else p + 1 for p in place[2:])]
        yield "frame %s %s" % (hexed(code.co_name), " ".join(map(str, place)))
        frame = frame.f_back
def stop():
    if armed:
        with open("expected", "w") as out:
            for ident, frame in sys._current_frames().items():
                print("thread %d" % ident, *describe(frame), sep="\n", file=out)
        wait("stopped")
    return 1

def multi_line_call():
    return max(
        0,
        stop(),
        *[1,
          2],
    )
def chained():
    return (Plain(1)
            .first()
            .second(
                3))
class Plain:
    def __init__(self, x=0): self.x = x
    def first(self): return self
    def second(self,
               y): return stop()
def generator():
    yield 1
    yield stop()
def delegating():
    x = yield from generator()
    return x
def generators():
    for x in generator(): pass
    total = sum(
        x for x in delegating())
    return total
def comprehension():
    return [
        y for y in (1,)
        if stop()]
def decorated():
    def around(f):
        @functools.wraps(f)
        def inner(*args):
            return f(
                *args)
        return inner
    @around
    @around
    def work(a, b): return stop()
    return work(1,
                2)
def decorator_itself():
    @(lambda f: stop())
    @functools.lru_cache(maxsize=None)
    def work(): pass
def formatted():
    return f"a {1} {stop()} {2!r:>{3}}"
class Special:
    def __init__(self):
        self.y = stop()
    def __getitem__(self, i):
        return stop()
    def __add__(self, other): return stop()
    def __enter__(self): return stop()
    def __exit__(self, *exc): stop()
    def __del__(self): stop()
    @property
    def attribute(self): return stop()
    def __getattr__(self, name):
        return stop()
    def __lt__(self, other): return bool(stop())
    def __iter__(self): return iter((1, 2))
    def __contains__(self, x): return stop()
    def __bool__(self): return bool(stop())
def specials():
    s = Special()
    s[
        1]; s + 1; s.attribute; s.missing; s < s; 3 in s
    if (not
            s): pass
    with s as t, \
            s: pass
    del s
def from_c():
    sorted([3, 1], key=lambda x:
           stop())
    list(map(lambda x: stop(),
             [1]))
    exec("1\n(lambda:\n stop())()")
def class_body():
    class Inner(
            Plain):
        x = stop()
        def method(self): return super().__init__(
            stop())
    Inner().method()
async def leaf():
    await asyncio.sleep(0)
    stop()
async def agen():
    yield 1
    yield stop()
async def branch():
    async for x in agen(): pass
    await asyncio.gather(leaf(),
                         leaf())
    await (
        leaf())
def coroutines():
    asyncio.run(branch())
def raising():
    try:
        1 / 0
    except ZeroDivisionError as e:
        try: stop()
        finally:
            stop()
def deep(n):
    return deep(n - 1) if n else stop()
def recursion(): return deep(50)

never = threading.Event()
def waiting_thread():
    never.wait(
        timeout=None)
threading.Thread(target=waiting_thread, daemon=True).start()
while not never._cond._waiters:  # about to wait; long before the scenarios have run it does
    time.sleep(0.01)
def scenarios():
    (multi_line_call(), chained(), generators(), comprehension(), decorated(), formatted(),
     decorator_itself(), specials(), from_c(), class_body(), coroutines(), raising(), recursion())
for _ in range(30): scenarios()  # so that what can be specialised is
armed = True
scenarios()
wait("done")
