"""Threads that stand still, or turn, in places which their names tell.

Prints one JSON line when each is in its place, ends when its standard input does.
"""

import asyncio
import functools
import hashlib
import json
import os
import socket
import sys
import threading
import time

NUMBERS = list(range(10000))
CROWD = 200
DEPTH = 5000
gate = threading.Lock()
gate.acquire()
reached = []  # a name for each thread that is about to wait
says = {"pid": os.getpid(), "version": list(sys.version_info[:2]), "names": {}, "lines": {}}


def here(name):
    """Note the line of the caller, which is about to wait for the gate in it."""
    says["lines"][name] = sys._getframe(1).f_lineno
    reached.append(name)


# ---------------------------------------------------------------- what threads wait for

def sleeps():
    here("sleeps"); time.sleep(1000)


def locks():
    here("locks"); gate.acquire()


def receives():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    far, _ = server.accept()
    says["address"] = "tcp 127.0.0.1:%d → 127.0.0.1:%d" % (client.getsockname()[1],
                                                          server.getsockname()[1])
    here("receives"); client.recv(1)


def pipes():
    r, w = os.pipe()
    says["pipe"] = "pipe:[%d]" % os.fstat(r).st_ino
    here("pipes"); os.read(r, 1)


# ---------------------------------------------------------------- who runs

def runs_python():
    here("runs_python")
    while True:
        for _ in NUMBERS:
            pass


def runs_c():
    here("runs_c")
    numbers = range(3000000)
    while True:
        sum(numbers)


def runs_without_the_gil():
    here("runs_without_the_gil")
    data = bytes(1 << 24)
    while True:
        hashlib.sha256(data)


# ---------------------------------------------------------------- shapes of stacks

def expression():
    f = str
    here("expression"); value = ("left" + f(1) + f(
        gate.acquire()) + "right")
    return value


def recursion(n=30):
    if n:
        recursion(n - 1)
    else:
        here("recursion"); gate.acquire()


def deep(n=DEPTH):
    if n:
        deep(n - 1)
    else:
        here("deep"); gate.acquire()


def wide(n=60):
    """Frames of some 4 KiB each: the stack fills many chunks of the interpreter's."""
    return WIDE["wide_level"](n, WIDE["wide_level"])


WIDE = {"here": here, "gate": gate}
exec("def wide_level(n, self, %s):\n"
     "    if n:\n"
     "        self(n - 1, self)\n"
     "    else:\n"
     "        here('wide'); gate.acquire()\n" % ", ".join("a%d=0" % i for i in range(500)), WIDE)


def inner_generator():
    yield 1
    here("generators"); gate.acquire()
    yield 2


def outer_generator():
    yield from inner_generator()


def generators():
    for _ in outer_generator():
        pass


async def agen():
    yield 1
    here("async_generators"); gate.acquire()
    yield 2


async def over_agen():
    async for _ in agen():
        pass


def async_generators():
    asyncio.run(over_agen())


async def innermost():
    here("coroutines"); gate.acquire()


async def awaiting():
    await innermost()


def coroutines():
    asyncio.run(awaiting())


def wait_in(name):
    here(name); gate.acquire()


def comprehensions():
    return [[wait_in("comprehensions") for _ in range(2)] for _ in range(2)]


def generator_expressions():
    return list(list(wait_in("generator_expressions") for _ in range(2)) for _ in range(2))


def decorate(function):
    @functools.wraps(function)
    def wrapper(*words):
        return function(*words)
    return wrapper


@decorate
def decorated():
    here("decorated"); gate.acquire()


class Base:
    def __init__(self):
        here("init"); gate.acquire()


class Derived(Base):
    def __init__(self):
        super().__init__()


def init():
    Derived()


def key(_):
    here("sort_key"); gate.acquire()


def sort_key():
    sorted([2, 1], key=key)


def each(_):
    here("maps"); gate.acquire()


def maps():
    list(map(each, [1]))


def imports():
    """Python called by C called by Python, through the import system's own frozen code."""
    import importlib.abc
    import importlib.machinery

    class Loader(importlib.abc.Loader):
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            here("imports"); gate.acquire()

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "sampled_made_up":
                return importlib.machinery.ModuleSpec(name, Loader())
            return None

    sys.meta_path.insert(0, Finder)
    import sampled_made_up  # noqa: F401


# ---------------------------------------------------------------- names

NAMES = {
    "plain": ("<string>", "made_by_exec"),
    "spaces": ("/nowhere/a b;c (d).py", "f"),
    "lines": ("/nowhere/two\nlines.py", "f"),
    "latin": ("/nowhere/\xe9.py", "caf\xe9"),
    "wide": ("/nowhere/\u4e16\u754c.py", "\u03b1\u03b2"),
    "beyond": ("/nowhere/\U0001f40d.py", "\U00010400"),
    "surrogate": ("/nowhere/\udc80.py", "f"),
    "empty": ("", "f"),
    "long": ("/nowhere/" + "x" * 3000 + ".py", "g" * 1500),
}


def odd_function(filename, name, tag):
    code = compile("def f():\n    here(tag); gate.acquire()\n", filename, "exec")
    space = {"here": lambda tag: reached.append(tag), "tag": "name " + tag, "gate": gate}
    exec(code, space)
    changes = {"co_name": name}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = name
    space["f"].__code__ = space["f"].__code__.replace(**changes)
    says["names"]["name " + tag] = [filename, name]
    return space["f"]


# ---------------------------------------------------------------- a second interpreter

def interpreter():
    """(the module, its function that runs text in an interpreter); None before 3.12."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        return module, module.run_string
    return None


def in_another_interpreter():
    module, run = interpreter()
    number = module.create()
    r, w = os.pipe()
    code = ("import os\n"
            "def waits_there():\n"
            "    os.write(%d, b'x')\n"
            "    os.read(%d, 1)\n"
            "waits_there()\n" % (says["there"], r))
    run(number, code)


def main():
    sys.setrecursionlimit(DEPTH * 3)
    threading.stack_size(256 << 20)
    targets = {each.__name__: each for each in (
        sleeps, locks, receives, pipes, runs_python, runs_c, runs_without_the_gil, expression,
        recursion, deep, wide, generators, async_generators, coroutines, comprehensions,
        generator_expressions, decorated, init, sort_key, maps, imports)}
    for tag, (filename, name) in NAMES.items():
        targets["name " + tag] = odd_function(filename, name, tag)
    r, says["there"] = os.pipe()
    if sys.version_info >= (3, 12):
        threading.Thread(target=in_another_interpreter, name="another", daemon=True).start()
        os.read(r, 1)
    busy = ("runs_python", "runs_c", "runs_without_the_gil")
    for name in [name for name in targets if name not in busy]:
        threading.Thread(target=targets[name], name=name, daemon=True).start()
    threading.stack_size(256 << 10)
    for number in range(CROWD):
        threading.Thread(target=wait_in, args=("crowd",), name="crowd %d" % number,
                         daemon=True).start()
    while len(reached) < len(targets) - len(busy) + CROWD:
        time.sleep(0.01)
    for name in busy:
        threading.Thread(target=targets[name], name=name, daemon=True).start()
    while len(reached) < len(targets) + CROWD:
        time.sleep(0.01)
    time.sleep(0.05)
    print(json.dumps(says), flush=True)
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
