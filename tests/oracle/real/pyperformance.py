"""A program of pyperformance, as it is: pyperformance.py SECONDS NAME FOLDER"""

import os
import sys
import time

from _loop import repeat

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3, "bench"))
import suite

work = suite.load_pyperformance(sys.argv[2], sys.argv[3])
start = time.perf_counter()
work(1)
loops = max(1, int(0.02 / (time.perf_counter() - start)))
repeat(lambda: work(loops))
