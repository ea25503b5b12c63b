"""The kinds of newest frames, one of each: what the programs tops and tops_short run.

Each kind is a function in_KIND that reaches its leaf in its own way, through a generator, through C,
through a dying object, …, and the leaf's own loop takes nearly all of the time. The leaf reads the
clock before and after its loop, in_KIND when it begins and ends: so the share of the leaf is known, and
what a profiler shows above it of in_KIND without the leaf has lost its newest frame.

A kind's stamps are t0 (in_KIND begins), then begin and end of each burst of the leaf, then t1. A series
has BURSTS bursts whatever the kind. No leaf calls a Python function, and nothing here does but to reach
the leaf.
"""

import functools
import itertools
import re
import sys

import oracle

going, now = oracle.going, oracle.now
BURSTS = 3
THREE = (1, 2, 3)
stamp = None  # appends to the stamps of the kind that runs


# ---------------------------------------------------------------- generators

def sum_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_sum(count):
    sum(sum_leaf(count))


def for_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_for(count):
    for _ in for_leaf(count):
        pass


def list_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_list(count):
    list(list_leaf(count))


def next_leaf(count):
    while True:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_next(count):
    generator = next_leaf(count)
    next(generator)
    next(generator)
    next(generator)


def join_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield "x"


def in_join(count):
    "".join(join_leaf(count))


def send_leaf(count):
    while True:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_send(count):
    generator = send_leaf(count)
    generator.send(None)
    generator.send(1)
    generator.send(2)


def chain_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def in_chain(count):
    """Through an iterator of C that is between the loop and the generator."""
    for _ in itertools.chain(chain_leaf(count), ()):
        pass


def close_leaf(count):
    try:
        yield
    finally:
        for _ in THREE:
            stamp(now())
            x = 0
            for i in range(count):
                x += i & 3
            stamp(now())


def in_close(count):
    generator = close_leaf(count)
    next(generator)
    generator.close()


def from_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


def from_middle(count):
    yield from from_leaf(count)


def from_outer(count):
    yield from from_middle(count)


def in_yield_from(count):
    for _ in from_outer(count):
        pass


# Of a generator expression the first `for` runs when it is made; what follows, in itself. A passage
# through `for i in range(lap)` that yields nothing is one burst; the lap of 0 only reads the clock again.


def in_genexpr(count):
    sum(i for turn in (1, 2, 3) if not stamp(now())
        for lap in (count, 0) if lap or not stamp(now()) for i in range(lap) if i < 0)


def in_any(count):
    any(i for turn in (1, 2, 3) if not stamp(now())
        for lap in (count, 0) if lap or not stamp(now()) for i in range(lap) if i < 0)


def in_comprehension(count):
    """A frame of its own before 3.12, part of this function since."""
    [i for turn in (1, 2, 3) if not stamp(now())
     for lap in (count, 0) if lap or not stamp(now()) for i in range(lap) if i < 0]


# ---------------------------------------------------------------- coroutines, driven by hand

async def await_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())


async def await_middle(count):
    await await_leaf(count)


async def await_outer(count):
    await await_middle(count)


def in_await(count):
    coroutine = await_outer(count)
    try:
        coroutine.send(None)
    except StopIteration:
        pass


async def agen_leaf(count):
    for _ in THREE:
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())
        yield x


async def agen_outer(count):
    async for _ in agen_leaf(count):
        pass


def in_async_for(count):
    coroutine = agen_outer(count)
    try:
        coroutine.send(None)
    except StopIteration:
        pass


# ---------------------------------------------------------------- functions that C calls

def map_leaf(count):
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return x


def in_map(count):
    list(map(map_leaf, (count, count, count)))


def filter_leaf(count):
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return x


def in_filter(count):
    list(filter(filter_leaf, (count, count, count)))


def key_leaf(count):
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return x


def in_key(count):
    sorted((count, count, count), key=key_leaf)


def reduce_leaf(_so_far, count):
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return x


def in_reduce(count):
    functools.reduce(reduce_leaf, (count, count, count), 0)


def match_leaf(match):
    count = match.pos + lengths[0]
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return "y"


lengths = [0]
substitute = re.compile("x").sub


def in_re_sub(count):
    lengths[0] = count
    substitute(match_leaf, "xxx")


def next_under_c(self):
    """__next__ of a class: C calls it."""
    if not self.left:
        raise StopIteration
    self.left -= 1
    stamp(now())
    x = 0
    for i in range(self.count):
        x += i & 3
    stamp(now())
    return x


class Iterator:
    __next__ = next_under_c

    def __init__(self, count):
        self.left, self.count = BURSTS, count

    def __iter__(self):
        return self


def in_iterator(count):
    sum(Iterator(count))


# ---------------------------------------------------------------- methods that nobody calls by name

class Dying:
    def __init__(self, count):
        self.count = count

    def __del__(self):
        stamp(now())
        x = 0
        for i in range(self.count):
            x += i & 3
        stamp(now())


def in_del(count):
    Dying(count)
    Dying(count)
    Dying(count)


class Described:
    count = 0

    @property
    def property_leaf(self):
        stamp(now())
        x = 0
        for i in range(self.count):
            x += i & 3
        stamp(now())
        return x

    def __getattr__(self, name):
        stamp(now())
        x = 0
        for i in range(self.count):
            x += i & 3
        stamp(now())
        return x

    def __eq__(self, other):
        stamp(now())
        x = 0
        for i in range(self.count):
            x += i & 3
        stamp(now())
        return False


described = Described()
plenty = [described, described, described]


def in_property(count):
    described.count = count
    described.property_leaf
    described.property_leaf
    described.property_leaf


def in_getattr(count):
    described.count = count
    described.first
    getattr(described, "second")
    described.third


def in_eq(count):
    """list.__contains__ compares."""
    described.count = count
    None in plenty


class Made:
    def __init__(self, count):
        stamp(now())
        x = 0
        for i in range(count):
            x += i & 3
        stamp(now())


def in_init(count):
    Made(count)
    Made(count)
    Made(count)


def in_class(count):
    for _ in THREE:
        class body_leaf:
            stamp(now())
            x = 0
            for i in range(count):
                x += i & 3
            stamp(now())


# ---------------------------------------------------------------- plain calls

DEPTH = 12


def recursion_leaf(level, count):
    """A stack that lost its newest frames ends with the same function: the whole path is judged."""
    if level > 1:
        return recursion_leaf(level - 1, count)
    stamp(now())
    x = 0
    for i in range(count):
        x += i & 3
    stamp(now())
    return x


def in_recursion(count):
    recursion_leaf(DEPTH, count)
    recursion_leaf(DEPTH, count)
    recursion_leaf(DEPTH, count)


def in_try(count):
    """The newest frame is the function itself, which C was called by just before."""
    for _ in THREE:
        try:
            int("no number")
        except ValueError:
            stamp(now())
            x = 0
            for i in range(count):
                x += i & 3
            stamp(now())


# ---------------------------------------------------------------- all of them

INLINED = sys.version_info >= (3, 12)

# The leaf of each kind, with what lies between.
KINDS = {
    in_sum: ["sum_leaf"], in_for: ["for_leaf"], in_list: ["list_leaf"], in_next: ["next_leaf"],
    in_join: ["join_leaf"], in_send: ["send_leaf"], in_chain: ["chain_leaf"],
    in_close: ["close_leaf"], in_yield_from: ["from_outer", "from_middle", "from_leaf"],
    in_genexpr: ["<genexpr>@_kinds.py"], in_any: ["<genexpr>@_kinds.py"],
    in_comprehension: [] if INLINED else ["<listcomp>@_kinds.py"],
    in_await: ["await_outer", "await_middle", "await_leaf"],
    in_async_for: ["agen_outer", "agen_leaf"], in_map: ["map_leaf"], in_filter: ["filter_leaf"],
    in_key: ["key_leaf"], in_reduce: ["reduce_leaf"], in_re_sub: ["match_leaf"],
    in_iterator: ["next_under_c"], in_del: ["__del__@_kinds.py"], in_property: ["property_leaf"],
    in_getattr: ["__getattr__@_kinds.py"], in_eq: ["__eq__@_kinds.py"],
    in_init: ["__init__@_kinds.py"], in_class: ["body_leaf"],
    in_recursion: ["recursion_leaf"] * DEPTH, in_try: [],
}


def labels(kind):
    """Of a series of stamps: what in_KIND itself took, and what its leaf."""
    return [f"{kind} itself", f"{kind} leaf"] * BURSTS + [f"{kind} itself"]


def main(logs):
    global stamp
    while True:
        for kind, log in logs:
            if going()[0]:
                return
            stamp = log.append
            count = next(counts)
            stamp(now())
            kind(count)
            stamp(now())


def run(low, high, least=False):
    """Bursts of so many turns of the loop. `least`: what the clock says is the least a leaf has."""
    global counts
    counts = oracle.scales(low, high)
    logs = [(kind, oracle.log()) for kind in KINDS]
    paths = {kind.__name__: ["<module>", "run", "main", kind.__name__, *above]
             for kind, above in KINDS.items()}
    # Beside the leaf, what is there for an instant: objects being made, iterators asked for, generators
    # that are closed because the function that had them is gone.
    others = [paths["in_iterator"][:-1] + ["__init__@_kinds.py"],
              paths["in_iterator"][:-1] + ["__iter__@_kinds.py"],
              paths["in_del"][:-1] + ["__init__@_kinds.py"],
              *(paths[name][:-2] + paths[name][-1:] for name in ("in_next", "in_send"))]
    oracle.ready([*paths.values(), *others], {}, ["_kinds.py"],
                 tops={name: {"path": path, "leaf": f"{name} leaf", "rest": f"{name} itself",
                              "least": least}
                       for name, path in paths.items()})
    main(logs)
    oracle.done(*((labels(kind.__name__), log) for kind, log in logs))
