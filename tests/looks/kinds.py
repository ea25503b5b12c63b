"""Programs whose newest frame is of one kind, for tests/looks/make: `kinds.py KIND SECONDS`.

The work is done in the function named `leaf`, or in one that is named after its kind; what lies between it and
`<module>` is the kind. `EXPECTED` has the stack of each, oldest first, for every Python."""

import functools
import sys
import time


# Python code that takes about a millisecond, without a call.
BURN = """
    total = 0
    for i in range(20000):
        total += i
"""
SOURCE = '''
def leaf(*_):{burn}
    return 1

def generate(n):
    for _ in range(n):{inner}
        yield 1

def delegate(n):
    yield from generate(n)

async def wait(n):
    for _ in range(n):{inner}
    return 1

async def wait_for(n):
    return await wait(n)

async def produce(n):
    for _ in range(n):{inner}
        yield 1

async def consume(n):
    async for _ in produce(n):
        pass

class Dying:
    def __del__(self):{inner}

class Described:
    @property
    def leaf(self):{inner}
        return 1

class Made:
    def __init__(self):{inner}
'''
exec(compile(SOURCE.format(burn=BURN, inner=BURN.replace("\n    ", "\n        ")), "kinds.py", "exec"))


def kind_plain(n):
    for _ in range(n):
        leaf()


def kind_sum(n):
    sum(generate(n))


def kind_for(n):
    for _ in generate(n):
        pass


def kind_list(n):
    list(generate(n))


def kind_yield_from(n):
    for _ in delegate(n):
        pass


def kind_join(n):
    ",".join(str(leaf(i)) for i in range(n))


def kind_await(n):
    coroutine = wait_for(n)
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def kind_async_for(n):
    coroutine = consume(n)
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def kind_map(n):
    list(map(leaf, range(n)))


def kind_sorted(n):
    sorted(range(n), key=leaf)


def kind_reduce(n):
    functools.reduce(leaf, range(n))


def kind_del(n):
    for _ in range(n):
        Dying()


def kind_property(n):
    described = Described()
    for _ in range(n):
        described.leaf


def kind_init(n):
    for _ in range(n):
        Made()


def kind_recursion(n, depth=30):
    if depth:
        return kind_recursion(n, depth - 1)
    return kind_plain(n)


KINDS = {name[5:]: each for name, each in globals().items() if name.startswith("kind_")}
EXPECTED = {
    "plain": ["<module>", "main", "kind_plain", "leaf"],
    "sum": ["<module>", "main", "kind_sum", "generate"],
    "for": ["<module>", "main", "kind_for", "generate"],
    "list": ["<module>", "main", "kind_list", "generate"],
    "yield_from": ["<module>", "main", "kind_yield_from", "delegate", "generate"],
    "join": ["<module>", "main", "kind_join", "<genexpr>", "leaf"],
    "await": ["<module>", "main", "kind_await", "wait_for", "wait"],
    "async_for": ["<module>", "main", "kind_async_for", "consume", "produce"],
    "map": ["<module>", "main", "kind_map", "leaf"],
    "sorted": ["<module>", "main", "kind_sorted", "leaf"],
    "reduce": ["<module>", "main", "kind_reduce", "leaf"],
    "del": ["<module>", "main", "kind_del", "__del__"],
    "property": ["<module>", "main", "kind_property", "leaf"],
    "init": ["<module>", "main", "kind_init", "__init__"],
    "recursion": ["<module>", "main"] + 31 * ["kind_recursion"] + ["kind_plain", "leaf"],
}


def main():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        KINDS[sys.argv[1]](20)


if __name__ == "__main__":
    main()
