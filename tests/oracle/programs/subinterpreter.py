"""A second interpreter in the same thread, which does the work: the stack that runs is its own, and the
program's stands still meanwhile."""

import os
import sys
import tempfile

import oracle

try:
    import _interpreters as interpreters  # 3.13 and later
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None
if interpreters is None:
    oracle.unable("this Python has no module for sub-interpreters")

going, now = oracle.going, oracle.now

SETUP = """
import array, time
now, stamps = time.monotonic_ns, array.array("q")

def sub_leaf(count):
    stamps.append(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamps.append(now())

def in_sub(count):
    stamps.append(now())
    for _ in (1, 2, 3):
        sub_leaf(count)
    stamps.append(now())
"""
TURN = "in_sub({})"
SAVE = "with open({!r}, 'wb') as file: stamps.tofile(file)"


def execute(source):
    problem = interpreters.run_string(interpreter, source)
    if problem:
        raise RuntimeError(problem)


def main():
    for scale in scales:
        if going()[0]:
            return
        execute(TURN.format(scale))


scales = oracle.scales(20_000, 60_000)
try:
    interpreter = interpreters.create()
    execute(SETUP)
except Exception as error:
    oracle.unable(f"sub-interpreters do not work here: {error}")
file = "<script>" if sys.version_info >= (3, 14) else "<string>"  # what its source is called
first = f"<module>@{file}"
path = [first, "in_sub", "sub_leaf"]
oracle.ready([path, ["<module>", "main", "execute", "~"]], {}, [file],
             roots=["<module>", first, ""],
             tops={"in_sub": {"path": path, "leaf": "leaf", "rest": "itself"}})
main()
with tempfile.NamedTemporaryFile() as file:
    execute(SAVE.format(file.name))
    log = oracle.log()
    log.fromfile(file, os.path.getsize(file.name) // log.itemsize)
oracle.done((["itself", "leaf", "itself", "leaf", "itself", "leaf", "itself"], log))
