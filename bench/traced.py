"""A program of the group trace as a whole process, which times its own work.

    traced.py NAME LOOPS PYPERFORMANCE_FOLDER ANSWER.json [EVENTS]

Writes the CPU seconds that the thread took for the work. With EVENTS (reads, reads-python) the interpreter's
events go to a C function that only reads the clock, meanwhile.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import suite


def main(name, loops, folder, answer, events=""):
    out = sys.stdout
    with open(os.devnull, "w") as sys.stdout:
        work = suite.load(name, folder)
        work(1)
        tool = None
        if events:
            from receivers import Floor

            tool = Floor(events == "reads", 2, ["RAISE"])
            tool.start()
        start = time.thread_time()
        work(int(loops))
        seconds = time.thread_time() - start
        if tool:
            tool.stop()
    sys.stdout = out
    with open(answer, "w") as file:
        json.dump(seconds, file)


main(*sys.argv[1:])
