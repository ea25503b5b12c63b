"""Writes a large pstats file: large_pstats.py FUNCTIONS OUT.prof.

Objects are shared as in a file by cProfile, for marshal writes a shared object once and then refers
to it: names and file names are, the labels made of them are not.
"""

import marshal
import random
import sys
from pathlib import Path


def write_pstats(path: Path, functions: int) -> None:
    """A pstats file of that many functions, each called by three to five others."""
    chance = random.Random(1)
    files = [f"/srv/application/package_{i // 25}/module_{i}.py" for i in range(functions // 20 + 1)]
    labels = [(files[i // 20], 1 + i % 20 * 15, sys.intern(f"function_{i}"))
              for i in range(functions)]
    stats = {}
    for label in labels:
        callers, calls, own, total = {}, 0, 0.0, 0.0
        for _ in range(chance.randint(3, 5)):
            count, time_self = chance.randint(1, 1000), chance.random() / 100
            caller = tuple(list(labels[chance.randrange(functions)]))
            if caller in callers:
                continue
            edge = (count, count, time_self, time_self * chance.uniform(1, 50))
            callers[caller] = edge
            calls, own, total = calls + count, own + edge[2], total + edge[3]
        stats[label] = (calls, calls, own, total, callers)
    with path.open("wb") as file:
        marshal.dump(stats, file)


write_pstats(Path(sys.argv[2]), int(sys.argv[1]))
