"""Measures one program under one Python with every variant in turn; started by bench/run.

    worker.py JOB.json RESULT.json

The job names the program, the variants, the rounds and the number of loops (0: find out how many
take about `seconds`). A round runs every variant once, in an order that moves on by one each round,
so that no variant always follows the same other one. Clocks: the CPU time of the process, which
leaves out what the machine gave to others, and wall time beside it.

A program of the group `lines` is loaded anew for each measurement: line_profiler changes the code
of the functions named to it, and events asked for leave their traces in code. pprofile, many times
slower than the program, gets a part of the loops, and its times are scaled up.
"""

import cProfile
import gc
import json
import os
import sys
import time

import lines
import suite
from receivers import Floor


class Profiled:
    """A profiler with the interface of cProfile.Profile.

    enable() is told again to leave C calls out: from 3.14 on, cProfile's forgets what its
    constructor was told and records them.
    """

    def __init__(self, make, builtins):
        self.profile, self.builtins = make(builtins=builtins), builtins

    def start(self):
        self.profile.enable(builtins=self.builtins)

    def stop(self):
        self.profile.disable()

    def calls(self):
        self.profile.create_stats()
        return sum(row[1] for row in self.profile.stats.values())


class Yappi:
    def __init__(self, builtins):
        import yappi

        self.yappi, self.builtins = yappi, builtins
        yappi.set_clock_type("wall")

    def start(self):
        self.yappi.start(builtins=self.builtins, profile_threads=False)

    def stop(self):
        self.yappi.stop()

    def calls(self):
        calls = sum(row.ncall for row in self.yappi.get_func_stats())
        self.yappi.clear_stats()
        return calls


class Nothing:
    def start(self):
        pass

    def stop(self):
        pass

    def calls(self):
        return None


def fathom_profile(**options):
    import fathom

    return fathom.Profile(**options)


VARIANTS = {
    "baseline": Nothing,
    "cprofile": lambda: Profiled(cProfile.Profile, True),
    "cprofile-python": lambda: Profiled(cProfile.Profile, False),
    "fathom": lambda: Profiled(fathom_profile, True),
    "fathom-python": lambda: Profiled(fathom_profile, False),
    "yappi": lambda: Yappi(True),
    "yappi-python": lambda: Yappi(False),
    "empty": lambda: Floor(True, False),
    "empty-python": lambda: Floor(False, False),
    "clock": lambda: Floor(True, True),
    "clock-python": lambda: Floor(False, True),
}


SLOW = ("yappi", "yappi-python", "pprofile")
PPROFILE_PART = 20  # it runs every 20th of the loops


def measure(work, loops, variant, want_calls):
    """CPU seconds, wall seconds and, if wanted, the number of calls (of lines: hits) recorded."""
    whole = loops
    if variant == "pprofile":
        loops = max(1, loops // PPROFILE_PART)
    tool = lines.VARIANTS[variant](work) if variant in lines.VARIANTS else VARIANTS[variant]()
    gc.collect()
    wall = time.perf_counter()
    cpu = time.process_time()
    tool.start()
    try:
        work(loops)
    finally:
        tool.stop()
    cpu = time.process_time() - cpu
    wall = time.perf_counter() - wall
    # yappi keeps one table for all and must be emptied each time.
    calls = tool.calls() if want_calls or variant.startswith("yappi") else None
    return cpu * whole / loops, wall * whole / loops, calls


def calibrate(work, seconds):
    """How many loops take about that long."""
    loops = 1
    while True:
        cpu = min(measure(work, loops, "baseline", False)[0] for _ in range(2))
        if cpu >= seconds / 4:
            return max(1, round(loops * seconds / cpu))
        loops = max(loops * 2, min(loops * 10, int(loops * seconds / 3 / max(cpu, 1e-6))))


def load(job):
    work = suite.load(job["program"], job["pyperformance"])
    work(1)
    return work


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    work = load(job)
    loops = job["loops"] or calibrate(work, job["seconds"])
    rounds, calls = [], {}
    for number in range(job["rounds"]):
        variants = [v for v in job["variants"]
                    if v not in SLOW or number < job["slow_rounds"]]
        turn = number % len(variants)
        times = {}
        for variant in variants[turn:] + variants[:turn]:
            if job["program"].startswith("lines/"):
                work = load(job)
            cpu, wall, counted = measure(work, loops, variant, number == 0 and job["count"])
            times[variant] = [cpu, wall]
            if counted is not None:
                calls[variant] = counted
        rounds.append(times)
    with open(sys.argv[2], "w") as file:
        json.dump({"loops": loops, "calls": calls, "rounds": rounds}, file)


main()
