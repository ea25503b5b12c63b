"""Regions in a trace: what the process tells, word by word, and that the recording has it."""

import os
import struct

import pytest

import recordings
import trace_words
from conftest import PACKAGE
from launch import own_run_folders, run  # noqa: F401 (a fixture)


@pytest.fixture
def trace(python, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)

    def call(code):
        return trace_words.trace(python, tmp_path, code, c_calls=0)

    return call


def said(one, thread=None):
    """Calls of the program's own functions and what it marks, in order, from the first mark on."""
    functions, files, names = one.defs.functions, one.defs.files, one.defs.names
    words, shown = [], []
    for event in one.main() if thread is None else one.events(thread):
        numbers = event.numbers
        if event.kind in ("call", "resume", "throw"):
            shown.append(files[numbers[0]].endswith("program.py") and functions[numbers[0]])
            words += [f"{event.kind} {shown[-1]}"] if shown[-1] else []
        elif event.kind in ("return", "yield", "unwind"):
            name = shown.pop()
            words += [f"{event.kind} {name}"] if name else []
        elif event.kind.startswith("region_") and (not numbers[0] or names[numbers[0]].startswith("import ")):
            pass  # the agent's own, around what loads modules
        elif event.kind in ("region_begin", "region_end", "instant"):
            words.append(f"{event.kind} {names[numbers[0]]}")
        elif event.kind == "value":
            words.append(f"value {names[numbers[0]]}={event.text}" + "".join(f" of {token}" for token in numbers[2:]))
        elif event.kind == "counter":
            words.append(f"counter {names[numbers[0]]} {struct.unpack('<d', struct.pack('<II', *numbers[1:]))[0]}")
        elif event.kind == "async_begin":
            words.append(f"async_begin {names[numbers[0]]} {numbers[1]}")
        elif event.kind == "async_end":
            words.append(f"async_end {numbers[0]}")
    return [word for word in words if "<module>" not in word]


def test_regions_nest_with_calls_and_have_values(trace):
    (one,) = trace("""
        import fathom
        def work(): pass
        with fathom.region("outer", size=3, name="x", ratio=0.5, none=None, yes=True, other=[1]):
            work()
            with fathom.region("inner"):
                work()
        fathom.counter("queue", 17)
        fathom.instant("now", why="so", often=2)
    """)
    assert said(one) == [
        "region_begin outer", "value size=3", "value name=x", "value ratio=0.5", "value none=None", "value yes=True",
        "value other=<list>", "call work", "return work", "region_begin inner", "call work", "return work",
        "region_end inner", "region_end outer", "counter queue 17.0", "instant now", "value why=so", "value often=2"]


def test_no_code_of_the_program_runs_for_a_value(trace):
    (one,) = trace("""
        import fathom
        class Loud(int):
            def __str__(self): raise SystemExit(3)
            __repr__ = __str__
        with fathom.region("x", loud=Loud(), huge=10 ** 10_000, long="y" * 500):
            pass
    """)
    values = [word for word in said(one) if word.startswith("value")]
    assert values == ["value loud=<Loud>", "value long=" + "y" * 200]


def test_a_generator_is_in_its_region_while_it_runs(trace):
    (one,) = trace("""
        import fathom
        def numbers():
            with fathom.region("inside"):
                yield 1
                yield 2
        for each in numbers():
            with fathom.region("around"):
                pass
    """)
    around = ["region_begin around", "region_end around"]
    words = [word for word in said(one) if word.startswith("region")]
    inside = ["region_begin inside", "region_end inside"]
    assert words == [*inside, *around, *inside, *around, *inside]


def test_tokens_are_spans_that_need_not_nest(trace):
    (one,) = trace("""
        import fathom, threading
        first = fathom.region_begin("job", n=1)
        second = fathom.region_begin("job", n=2, odd="abc")
        fathom.region_end(first)
        def end(): fathom.region_end(second)
        t = threading.Thread(target=end); t.start(); t.join()
    """)
    words = said(one)
    assert words == ["async_begin job 1", "value n=1 of 1", "async_begin job 2", "value n=2 of 2", "value odd=abc of 2",
                     "async_end 1"]
    other = [number for number in one.thread_numbers() if number != one.thread_numbers()[0]]
    assert [word for number in other for word in said(one, number)] == ["call end", "async_end 2", "return end"]


def test_the_recording_has_regions_and_nothing_is_damaged(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import asyncio, fathom, threading
def work(): pass
async def task():
    with fathom.region("task"):
        await asyncio.sleep(0)
async def main():
    await asyncio.gather(task(), task())
asyncio.run(main())
for i in range(3):
    with fathom.region("outer"):
        work()
token = fathom.region_begin("job")
t = threading.Thread(target=fathom.region_end, args=(token,)); t.start(); t.join()
a, b = fathom.region("a"), fathom.region("b")
a.__enter__(); b.__enter__(); a.__exit__(None, None, None); b.__exit__(None, None, None)
""")
    output = tmp_path / "out.fathom"
    done = run("--trace", program, python=python, output=output, collectors=(),
               env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    table = recordings.report(output, "--regions")
    assert {"/".join(row["path"]): (row["entered"], row["open"]) for row in table["regions"]} == {
        "task": (2, 0), "outer": (3, 0), "job": (1, 0), "a": (1, 0), "a/b": (1, 0)}
    assert not [note for note in table["notes"] if "trace" in note["text"]]


def test_a_counter_of_what_is_no_number(python, tmp_path):
    """Nobody hears of it while nothing is recorded, so nobody does under a recording."""
    code = ("import fathom\n"
            "class Bad:\n"
            "    def __float__(self): raise ZeroDivisionError\n"
            "for value in None, '3', 1 + 2j, 10 ** 400, Bad(), 7:\n"
            "    fathom.counter('queue', value)\n"
            "print('end')\n")
    for collector in ("--trace", "--calls"):
        done = run("-c", code, python=python, output=tmp_path / f"{collector}.fathom", collectors=(collector,),
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
