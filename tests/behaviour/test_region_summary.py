"""fathom.summary, fathom.timing and FATHOM_SUMMARY: regions as a table, with no recording at all."""

import math
import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from conftest import PACKAGE

# A solver as PyOP2's users write them: phases in loops, inside of one another.
SOLVER = """
    import fathom, time

    @fathom.timed
    def assemble(level):
        with fathom.region("quadrature", level=level):
            time.sleep(0.002)
        if level:
            assemble(level - 1)

    @fathom.region("solve")
    def solve():
        for i in range(20):
            with fathom.region("iteration"):
                pass

    for step in range(3):
        with fathom.region("step"):
            assemble(2)
            solve()
    """


def run(python, tmp_path, program, status=0, **env):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    done = subprocess.run([python, str(script)], env={**os.environ, "PYTHONPATH": PACKAGE, **env},
                          capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    return done


def table(text):
    """[(indentation, name, count, total in seconds, text of the row)] of the first table."""
    units = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    rows = []
    for line in text.splitlines():
        found = re.match(r" *(\d+) +([\d.]+) (ns|µs|ms|s) .* [\d.]+ %  ( *)(.*)$", line)
        if found:
            count, total, unit, indentation, name = found.groups()
            rows.append((len(indentation) // 2, name, int(count), float(total) * units[unit], line))
    return rows


def test_a_solver_prints_its_table(python, tmp_path):
    done = run(python, tmp_path, SOLVER, FATHOM_SUMMARY="1")
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"fathom: regions of process \d+, [\d.]+ s", lines[0])
    assert lines[1].split() == ["count", "total", "mean", "min", "max", "share", "region"]
    rows = table(done.stderr)
    assert len(lines) == 2 + len(rows)
    assert [row[:3] for row in rows] == [
        (0, "step", 3), (1, "assemble", 9), (2, "quadrature", 9), (1, "solve", 3), (2, "iteration", 60)]
    assert rows[0][3] >= rows[1][3] >= rows[2][3] >= 9 * 0.002
    assert rows[3][3] >= rows[4][3] > 0


def test_the_solver_of_the_manual(python, tmp_path):
    if subprocess.run([python, "-c", "import numpy"], capture_output=True, timeout=300).returncode:
        pytest.skip("numpy is not installed for this Python")
    program = Path(__file__).parent.parent / "programs" / "region_solver.py"
    done = subprocess.run([python, str(program), "200", "4"], env={**os.environ, "PYTHONPATH": PACKAGE, "FATHOM_SUMMARY": "1"},
                          capture_output=True, text=True, timeout=300)
    assert float(done.stdout) == pytest.approx(math.exp(-math.pi ** 2 * 1e-4 * 4), rel=1e-4)
    rows = {(row[0], row[1]): row[2] for row in table(done.stderr)}
    iterations = rows.pop((2, "iteration"))
    assert rows == {(0, "step"): 4, (1, "solve"): 4, (1, "assemble"): 8, (1, "multiply"): 4, (2, "quadrature"): 8, (2, "scatter"): 8,
                    (2, "multiply"): 4, (3, "multiply"): iterations, (3, "precondition"): iterations}


@pytest.mark.parametrize("value", [None, "", "0"])
def test_nothing_is_printed_unless_asked_for(python, tmp_path, value):
    done = run(python, tmp_path, SOLVER, **({} if value is None else {"FATHOM_SUMMARY": value}))
    assert done.stdout == done.stderr == ""


def test_times_are_those_of_the_programs_own_clock(inside):
    """A region lies between what the program reads inside of it and around it."""
    outer, inner, total, mean, none = inside("""
        import time
        fathom.summarize()
        outer = inner = 0
        for i in range(5):
            a = time.perf_counter()
            with fathom.region("x"):
                b = time.perf_counter()
                time.sleep(0.02)
                c = time.perf_counter()
            outer += time.perf_counter() - a
            inner += c - b
        result = [outer, inner, fathom.timing("x"), fathom.timing("x", total=False), fathom.timing("y")]
        """)
    assert inner * 0.999 <= total <= outer * 1.001 and mean == pytest.approx(total / 5) and none == 0.0


def test_recursion_is_counted_once(inside):
    outer, total, count = inside("""
        import io, time
        fathom.summarize()
        def down(n):
            with fathom.region("down"):
                with fathom.region("other"):
                    if n:
                        down(n - 1)
                    else:
                        time.sleep(0.01)
        a = time.perf_counter()
        down(5)
        text = io.StringIO()
        fathom.summary(text)
        result = [time.perf_counter() - a, fathom.timing("down"), text.getvalue().splitlines()[2].split()[0]]
        """)
    assert 0.0099 <= total <= outer * 1.001 and count == "6"


def test_threads_add_up_and_children_begin_anew(python, tmp_path):
    done = run(python, tmp_path, """
        import fathom, os, sys, threading
        def work():
            for i in range(1000):
                with fathom.region("outer"), fathom.region("inner"):
                    pass
        threads = [threading.Thread(target=work) for i in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        with fathom.region("forks"):
            child = os.fork()
            if not child:
                with fathom.region("of the child"):
                    pass
                sys.exit()
            os.waitpid(child, 0)
        if not os.fork():
            sys.exit()
        os.wait()
        """, FATHOM_SUMMARY="1")
    tables = done.stderr.split("fathom: regions of process ")[1:]
    assert len(tables) == 2
    assert [row[:3] for row in table(tables[0])] == [(0, "of the child", 1)]
    assert sorted(row[:3] for row in table(tables[1])) == [(0, "forks", 1), (0, "outer", 4000), (1, "inner", 4000)]


def test_tasks_generators_and_tokens(python, tmp_path):
    done = run(python, tmp_path, """
        import asyncio, fathom, threading
        @fathom.timed
        async def request(n):
            await asyncio.sleep(0.001)
        async def main():
            await asyncio.gather(*(request(i) for i in range(10)))
        asyncio.run(main())
        @fathom.timed("numbers")
        def numbers():
            yield from range(3)
        list(numbers())
        tokens = [fathom.region_begin("job", n=i) for i in range(3)]
        for token in tokens[:2]:
            threading.Thread(target=fathom.region_end, args=(token,)).start()
        """, FATHOM_SUMMARY="1")
    rows = {row[1]: row for row in table(done.stderr)}
    assert rows["request"][2] == 10 and rows["request"][3] >= 10 * 0.001
    assert rows["numbers"][2] == 1
    assert rows["job (1 open)"][2] == 3


def test_many_names_are_bounded(inside):
    rows, more = inside("""
        from fathom._summary import _rows
        fathom.summarize()
        for i in range(70_000):
            with fathom.region(f"request {i}"):
                pass
        rows = _rows()
        result = [len(rows), [row.count for row in rows if row.name == "<more regions>"]]
        """)
    assert rows == 50_001 and more == [20_000]


def test_a_closed_stderr_is_no_failure(python, tmp_path):
    run(python, tmp_path, """
        import fathom, sys
        with fathom.region("x"):
            pass
        sys.stderr.close()
        """, FATHOM_SUMMARY="1")


def test_what_was_not_counted_says_so(inside):
    said = inside("""
        result = []
        for call in (lambda: fathom.timing("x"), fathom.summary):
            try:
                call()
            except LookupError as error:
                result.append(str(error))
        """)
    assert said == ["regions are not counted: call fathom.summarize() first, or set FATHOM_SUMMARY=1"] * 2
