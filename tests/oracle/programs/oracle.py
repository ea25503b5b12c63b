"""What the oracle's programs share: how each says what is true of it.

A program prints two lines of JSON. The first, before its work begins, says what stacks it can have;
the second, when its standard input ends, how long it really spent on what, by its own clock.

    {"pid": 1, "paths": [["<module>", "main", "heavy"], …], "modules": [], "shares": {…}}
    {"logs": [{"labels": ["heavy", "light"], "stamps": [t0, t1, t2, t0, t1, t2, …]}]}

A path is a deepest stack, outermost function first; a stack is possible if a path begins with it. "~"
stands for one or more functions of other files. `shares` names groups of labels; a sample belongs to
the label whose function it has in its stack. A log holds the instants (monotonic nanoseconds) between
which each label's work was done, one series of len(labels) + 1 after the other, so that the truth of
any window of time can be added up.

`tops` names functions of which it is known what is called by them, and for how long:

    {"tops": {"in_sum": {"path": ["<module>", "main", "in_sum", "leaf"], "leaf": "a", "rest": "b"}}}

Of the time inside in_sum, the share of the label a over a and b belongs to stacks that are exactly
the path; samples of in_sum that are not have lost their newest frames, beyond what b allows. With
"least": true the share may be larger than the clock says. `roots` are the functions that may be the
oldest of a stack, where they are not the program's `<module>` or what starts threads; "" where it
may be empty. A line `# needs: PACKAGE` in a program's head says what must be installed for it.

Everything that the loops call from here is a C function: it puts no frame on the stack.
"""

import array
import functools
import itertools
import json
import os
import random
import select
import sys
import time

now = time.monotonic_ns

# going()[0] is empty for as long as standard input is open.
going = functools.partial(select.select, [0], [], [], 0)


def scales(low=10, high=30, count=4096):
    """An endless series of random integers: no rhythm for a sampler to fall in step with."""
    numbers = random.Random(7)
    return itertools.cycle([numbers.randint(low, high) for _ in range(count)])


def log():
    """Where a loop puts its stamps; extend() is a C function."""
    return array.array("q")


def ready(paths, shares, modules=(), **more):
    print(json.dumps({"pid": os.getpid(), "paths": [list(path) for path in paths],
                      "shares": shares, "modules": list(modules), **more}), flush=True)


def unable(reason):
    """Say why this program cannot run here, and end."""
    print(json.dumps({"unable": reason}), flush=True)
    os._exit(0)


def done(*logs):
    """Each log is (labels, stamps). If nobody wants to know any more, that is that."""
    try:
        print(json.dumps({"logs": [{"labels": list(labels), "stamps": list(stamps)}
                                   for labels, stamps in logs]}), flush=True)
        sys.stdout.close()
    except BrokenPipeError:
        pass
    os._exit(0)
