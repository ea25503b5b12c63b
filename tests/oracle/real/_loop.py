"""What the real programs share: a piece of work is repeated for as many seconds as the command line says.

compare.py looks only at what is below `real_work`, so that importing packages, which a profiler
that starts late does not see, is left out for all of them.
"""

import sys
import time


def real_work(step):
    end = time.perf_counter() + float(sys.argv[1])
    while time.perf_counter() < end:
        step()
