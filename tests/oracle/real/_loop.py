"""What the real programs share: a piece of work is repeated for as many seconds as the command line
says.

compare.py looks only at what is below `real_work`, so that importing packages, which a profiler
that starts late does not see, is left out for all of them. With REAL_WAIT in the environment the
work begins when a line comes in, after the process id went out: so a profiler is there in time.

Garbage is collected between the steps only. Since 3.12 it is collected when a function begins,
since 3.13 before the event that says so: of this time the calls collector knows that it was the
caller's, and a sampler that it was the callee's.
"""

import gc
import os
import sys
import time


def wait():
    if os.environ.get("REAL_WAIT"):
        print(os.getpid(), flush=True)
        sys.stdin.readline()


def real_work(step, seconds):
    end = time.perf_counter() + seconds
    gc.disable()
    while True:
        step()
        gc.collect(0)
        if time.perf_counter() >= end:
            return


def repeat(step):
    wait()
    real_work(step, float(sys.argv[1]))


def once(step):
    """For what cannot be repeated: it gets the seconds that it should take."""
    wait()
    real_work(lambda: step(float(sys.argv[1])), 0)
