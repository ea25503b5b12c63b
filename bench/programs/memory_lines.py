"""memory_lines.py LOOPS ANSWER: a function whose lines allocate, for the tables of the group memory (bench/memory.py)."""

import json
import resource
import sys
import time

try:
    profile
except NameError:  # plain
    def profile(function):
        return function


@profile
def work(count):
    held = []
    for i in range(count):
        text = str(i) * 3
        if i % 10 == 0:
            held.append(text)
        else:
            pair = [text, i]
            del pair
    return len(held)


if __name__ == "__main__":
    begin = time.process_time()
    work(100 * int(sys.argv[1]))
    cpu = time.process_time() - begin
    with open(sys.argv[2], "w") as answer:
        json.dump({"cpu": cpu, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}, answer)
