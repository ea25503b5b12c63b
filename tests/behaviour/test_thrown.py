"""throw() into generators and coroutines that delegate: the innermost one gets it, and when that swallows it and ends, the one
around it goes on. 3.11 tells nobody of that. How often each goes on is known by construction of the program."""

import pytest

import launch
import recordings
import trace_words

PROGRAM = """
import types

def inner():
    try:
        yield
    except KeyError:
        return 1

def helper():
    pass

def calls_c():
    value = yield from inner()
    len("x")
    return value

def calls_python():
    value = yield from calls_c()
    helper()
    yield value

def ends():
    return (yield from inner())

def ends_around():
    return (yield from ends())

def raises():
    yield from inner()
    raise LookupError

def sorts():
    yield from inner()
    sorted([1], key=lambda n: n)

def refuses():
    yield

def passes_on():
    try:
        yield from refuses()
    except KeyError:
        helper()

class Iterator:
    def __iter__(self): return self
    def __next__(self): return 0
    def throw(self, *raised): raise StopIteration(5)

def takes_any():
    yield (yield from Iterator())

@types.coroutine
def waits():
    yield

async def numbers():
    for n in range(3):
        try:
            await waits()
        except KeyError:
            pass
        yield n

async def reads():
    async for n in numbers():
        helper()

def drive(generator):
    generator.send(None)
    try:
        while True:
            generator.throw(KeyError())
    except (StopIteration, KeyError, LookupError):
        pass

for make in calls_python, ends_around, raises, sorts, passes_on, takes_any, reads:
    drive(make())
"""

# Begun, and gone on.
EXPECTED = {
    "inner": (4, 4), "calls_c": (1, 1), "calls_python": (1, 2), "ends": (1, 1), "ends_around": (1, 1), "raises": (1, 1),
    "sorts": (1, 1), "sorts.<locals>.<lambda>": (1, 0), "refuses": (1, 1), "passes_on": (1, 1), "Iterator.throw": (1, 0),
    "takes_any": (1, 2), "waits": (3, 3), "numbers": (1, 6), "reads": (1, 3), "helper": (1 + 1 + 3, 0), "drive": (7, 0),
}
WAYS = [("--calls",), ("--calls", "--no-c-calls"), ("--trace",), ("--trace", "--no-c-calls")]


@pytest.fixture(params=WAYS, ids=" ".join)
def way(request):
    return request.param


def test_each_goes_on_as_often_as_it_does(python, way, tmp_path):
    path = tmp_path / "o.fathom"
    done = launch.run("-c", PROGRAM, collectors=way, python=python, output=path)
    assert (done.returncode, done.stderr) == (0, "")
    found = recordings.functions(path)
    assert {name: [(row["calls"], row["resumes"]) for row in found[name]] for name in EXPECTED} == {
        name: [(begun + gone_on, gone_on)] for name, (begun, gone_on) in EXPECTED.items()}
    assert [note for note in recordings.report(path)["notes"] if note["kind"] == "lost"] == []


def test_what_it_does_then_is_its_own(python, way, tmp_path):
    """It calls nothing, so nothing tells of it before its end. The program's own clock says how long it took: that of its
    processor, as it may have to wait for one on the way there."""
    path = tmp_path / "o.fathom"
    done = launch.run("-c", """
import time
def inner():
    try: yield
    except KeyError: pass
def counts():
    yield from inner()
    n = 1000000
    while n: n -= 1
generator = counts()
next(generator)
before = time.thread_time_ns()
try: generator.throw(KeyError())
except StopIteration: print(time.thread_time_ns() - before)
""", collectors=way, python=python, output=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert recordings.one(path, "counts")["self_ns"] > int(done.stdout) * 0.9


@pytest.mark.parametrize("c_calls", [1, 0])
def test_in_which_order(python, c_calls, tmp_path):
    (one,) = trace_words.trace(python, tmp_path, """
        def inner():
            try: yield
            except KeyError: pass
        def middle():
            yield from inner()
            helper()
        def outer():
            yield from middle()
        def helper(): pass
        def throw(generator):
            try: generator.throw(KeyError())
            except StopIteration: pass
        generator = outer()
        next(generator)
        throw(generator)
    """, c_calls=c_calls)
    said = [word for word in one.told() if "<method" not in word and "<built-in" not in word]
    assert said[said.index("call throw"):][:10] == [
        "call throw", "throw inner", "return inner", "throw middle", "call helper", "return helper", "return middle",
        "throw outer", "return outer", "return throw"]
