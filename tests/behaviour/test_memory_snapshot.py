"""fathom.memory_snapshot(): what is alive in the program that asks, by programs whose blocks are known."""

import json
import os
import subprocess
import textwrap

import pytest

from conftest import FATHOM, PACKAGE
from launch import TIMEOUT

HEADER = 33  # of a bytes object, with the byte behind it


@pytest.fixture
def asked(python, tmp_path):
    """Run code under `fathom run --memory`; what it assigned to `result`."""

    def call(code, *options, ends="\nprint('RESULT', json.dumps(result))\n"):
        script = tmp_path / "program.py"
        script.write_text("import json, fathom\n" + textwrap.dedent(code) + ends)
        done = subprocess.run(
            [FATHOM, "run", *(options or ["--memory"]), "-q", "-f", "-o", str(tmp_path / "out.fathom"),
             "--python", python, str(script)], capture_output=True, text=True, timeout=TIMEOUT,
            env=dict(os.environ, PYTHONPATH=PACKAGE), check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return json.loads(done.stdout.rpartition("RESULT ")[2])

    return call


KNOWN = """
    def make(count, size):
        kept = [None] * count
        for i in range(count):
            kept[i] = bytes(size)  # line 6
        return kept
    def outer():
        return make(7, 1000)
    fathom.memory_snapshot()
    first = fathom.memory_snapshot()
    kept = outer()
    second = fathom.memory_snapshot()
    """


def test_exact_bytes_of_lines_and_functions(asked):
    result = asked(KNOWN + """
    lines = {row[1:3]: row[3:] for row in second.lines()}
    functions = {row.function: row[3:] for row in second.functions()}
    result = [lines[6, "make"], functions["make"], functions["outer"], lines.get((5, "make"))]
    """)
    table = 7 * 8 + 0  # of pointers; the list itself may come from a free list
    line, make, outer, _ = result
    assert line == [7 * (1000 + HEADER), 7, 7 * (1000 + HEADER)]
    assert make[0] >= line[0] + table and make[2] == make[0]
    assert outer[0] == 0 and outer[2] == make[2]


def test_the_difference(asked):
    result = asked(KNOWN + """
    del kept
    third = fathom.memory_snapshot()
    def of(difference):
        return [row[3:] for row in difference.lines() if row[1:3] == (6, "make")]
    result = [of(second - first), of(third.since(second)), of(third - first), of(first - second),
              (second - first).live >= 7 * 1033, (second - first).lines(1)[0].function,
              bool(second - first)]
    """)
    whole = 7 * (1000 + HEADER)
    assert result == [[[whole, 7, whole]], [[-whole, -7, -whole]], [], [[-whole, -7, -whole]], True, "make",
                      True]


def test_totals_are_those_of_the_rows(asked):
    result = asked(KNOWN + """
    big = bytearray(30_000_000)
    del big
    s = fathom.memory_snapshot()
    rows, functions = s.lines(), s.functions()
    result = [s.live, sum(row.bytes for row in rows), sum(row.bytes for row in functions), s.blocks,
              sum(row.blocks for row in rows), s.peak, s.peak_blocks, s.allocated, s.allocated_blocks, s.own]
    """)
    live, lines, functions, blocks, line_blocks, peak, peak_blocks, allocated, made, own = result
    assert lines == functions <= live and line_blocks <= blocks
    assert live - lines < 1_000_000  # in no function
    assert live + 30_000_000 <= peak + 10_000 and peak < live + 31_000_000
    assert peak_blocks > 1000 and allocated >= peak and made >= peak_blocks and own > 0


def test_what_is_kept_of_it_does_not_count(asked):
    result = asked("""
    fathom.memory_snapshot()
    many = [None] * 100
    first = fathom.memory_snapshot()
    for i in range(100):
        many[i] = fathom.memory_snapshot()
    last = fathom.memory_snapshot()
    result = [(last - first).live, len(many[0]._data)]
    """)
    grown, size = result
    assert size > 5000 and grown <= 100 * 100


def test_it_is_of_the_process_that_asks(asked):
    result = asked("""
    import os
    kept = [bytes(50_000) for _ in range(10)]
    fathom.memory_snapshot()
    inside, outside = os.pipe()
    child = os.fork()
    if not child:
        more = bytes(70_000), bytes(70_000), bytes(70_000)
        s = fathom.memory_snapshot()
        own = sum(row.bytes for row in s.lines() if row.bytes >= 200_000 and row.line == 9)
        inherited = sum(row.bytes for row in s.lines() if row.function == "<inherited by fork>")
        os.write(outside, json.dumps([own, inherited > 10 * 50_033]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    result = json.loads(os.read(inside, 1000))
    """)
    assert result[0] == 3 * (70_000 + HEADER) and result[1]


def test_the_table_for_people(asked):
    text = asked(KNOWN + """
    big = bytes(8 << 20)
    result = [str(fathom.memory_snapshot() - first), str(fathom.memory_snapshot()), repr(second)]
    """)
    difference, whole, shown = text
    assert difference.startswith("+8.0")
    row = next(line for line in difference.splitlines() if "program.py:6" in line)
    assert row.split() == ["+7.06", "KiB", "+7", "+7.06", "KiB", "make", "program.py:6"]
    assert "blocks are alive; the most were" in whole and shown.startswith("<fathom.MemorySnapshot: ")


def test_nothing_records(inside):
    result = inside("""
        s = fathom.memory_snapshot()
        d = fathom.memory_snapshot() - s
        result = [bool(s), bool(d), s.live, s.peak, d.live, s.lines(), d.functions(3), str(s), str(d)]
        """)
    sentence = "no memory is recorded here: fathom run --memory does"
    assert result == [False, False, 0, 0, 0, [], [], sentence, sentence]


def test_a_run_without_memory_has_none(asked):
    assert asked("result = fathom.memory_snapshot().live", "--calls") == 0


def test_threads_go_on_meanwhile(asked):
    result = asked("""
    import threading
    stop = False
    def churn():
        while not stop:
            [bytes(3000) for _ in range(50)]
    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads: thread.start()
    lives = [fathom.memory_snapshot().live for _ in range(50)]
    stop = True
    for thread in threads: thread.join()
    result = [min(lives), max(lives)]
    """)
    assert 0 < result[0] <= result[1] < 100_000_000


def test_wrong_uses(inside):
    result = inside("""
        result = []
        for wrong in (lambda s: s - 1, lambda s: s.since(None), lambda s: s.nothing):
            try:
                wrong(fathom.memory_snapshot())
            except Exception as e:
                result.append(type(e).__name__)
        """)
    assert result == ["TypeError", "TypeError", "AttributeError"]


SAMPLES = """
    first = fathom.memory_snapshot()
    kept = [bytes(100_000) for _ in range(100)]
    second = fathom.memory_snapshot()
    result = [[s.sampled, str(s).splitlines()[0], repr(s)] for s in (second, second - first)]
    """


@pytest.mark.parametrize("options, every, text", [
    (["--memory=sampled"], 65536, "64.0 KiB"), (["--memory=sampled:32K"], 32768, "32.0 KiB")])
def test_estimates_say_so(asked, options, every, text):
    whole, change = asked(SAMPLES, *options)
    assert whole[0] == change[0] == every
    for found in (whole[1], change[1]):
        assert found.startswith("about ") and " in about " in found and found.endswith(f" (sampled every {text})"), found
    assert whole[1].count("about ") == 4
    assert whole[1] in whole[2] and change[1] in change[2]


def test_exact_numbers_do_not_say_about(asked):
    for sampled, text, _ in asked(SAMPLES):
        assert sampled is None and "about" not in text and "sampled" not in text


def test_nothing_recorded_is_not_sampled(asked):
    assert asked("result = fathom.memory_snapshot().sampled", "--calls") is None
