"""A process with so many modules of its own loaded, each with a few functions, busy in one of them
until standard input ends."""

import importlib
import os
import select
import sys
import tempfile

SOURCE = """
import sys

class Thing:
    def method(self, x):
        return function(x)

def function(x):
    return [x, {number}]

def other(x):
    return function(x)
"""

with tempfile.TemporaryDirectory(prefix="fathom-bench-") as folder:
    sys.path.insert(0, folder)
    for number in range(int(sys.argv[1])):
        with open(os.path.join(folder, f"bench_module_{number}.py"), "w") as file:
            file.write(SOURCE.format(number=number))
    importlib.invalidate_caches()
    last = [importlib.import_module(f"bench_module_{number}")
            for number in range(int(sys.argv[1]))][-1]
print("ready", flush=True)
while not select.select([0], [], [], 0)[0]:
    for i in range(10_000):
        last.other(i)
