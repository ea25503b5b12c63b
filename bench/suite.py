"""The programs to measure, by name, each as a function of the number of loops.

A small loop is a file of bench/programs with a function `work(loops)`, and so are the programs for
line times, in bench/programs/lines. A program of pyperformance is run as it is, with a stand-in for
the module `pyperf` which, in place of measuring, hands over the function that would be measured.
"""

import os
import runpy
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))

LOOPS = ("fib", "methods", "c_calls", "generators", "deep", "mixed")

# Of the group `trace`: libraries at work, in bench/programs/real.
REAL = ("ast", "difflib", "pprint", "sqlglot")

# Of the group `lines`: a statement is a line, for profilers differ over longer ones.
LINES = ("dense", "calls", "generators", "nbody", "spectral", "mandelbrot", "text", "tables")

# Pure Python, no dependency, and more than a few calls in them. The words behind a name are the
# program's own command line.
PYPERFORMANCE = {
    "async_tree": ["none"],
    "chaos": [],
    "deltablue": [],
    "generators": [],
    "go": [],
    "logging": ["format"],
    "nqueens": [],
    "pyflate": [],
    "raytrace": ["--width", "50", "--height", "50"],
    "richards": [],
}


def names():
    """Every program of the groups about calls, as GROUP/NAME."""
    return [f"loops/{name}" for name in LOOPS] + [f"pyperformance/{name}" for name in PYPERFORMANCE]


def line_names():
    """Every program of the group `lines`, as lines/NAME."""
    return [f"lines/{name}" for name in LINES]


def trace_names():
    """Every program of the group `trace`."""
    return [*names(), *(f"real/{name}" for name in REAL)]


def load(name, pyperformance):
    """The function of a program; `pyperformance` is the folder with its benchmarks."""
    group, _, short = name.partition("/")
    if group == "loops":
        return runpy.run_path(os.path.join(HERE, "programs", short + ".py"))["work"]
    if group in ("lines", "real"):
        return runpy.run_path(os.path.join(HERE, "programs", name + ".py"))["work"]
    return load_pyperformance(short, pyperformance)


class Runner:
    """What the benchmark programs use of pyperf.Runner."""

    found = []

    def __init__(self, **_options):
        import argparse

        self.metadata = {}
        self.argparser = argparse.ArgumentParser()

    def parse_args(self):
        return self.argparser.parse_args()

    def bench_func(self, _name, func, *args, **_options):
        def work(loops):
            for _ in range(loops):
                func(*args)

        self.found.append(work)

    def bench_time_func(self, _name, func, *args, **_options):
        self.found.append(lambda loops: func(loops, *args))

    def bench_async_func(self, _name, func, *args, **_options):
        import asyncio  # here: what imports it costs is not to be in other programs

        async def main(loops):
            for _ in range(loops):
                await func(*args)

        self.found.append(lambda loops: asyncio.run(main(loops)))


def load_pyperformance(short, folder):
    stand_in = types.ModuleType("pyperf")
    stand_in.Runner = Runner
    stand_in.perf_counter = time.perf_counter
    stand_in.python_implementation = lambda: "cpython"
    sys.modules["pyperf"] = stand_in
    script = os.path.join(folder, f"bm_{short}", "run_benchmark.py")
    argv, sys.argv = sys.argv, [script, *PYPERFORMANCE[short]]
    # Under `python -m cProfile` the module __main__ is cProfile itself; the program gets its own.
    sys.path.insert(0, os.path.dirname(script))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv = argv
    return Runner.found[0]
