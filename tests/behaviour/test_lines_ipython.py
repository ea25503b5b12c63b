"""%load_ext fathom: %lprun, %prun, %memit, %mprun and %%fathom, in a real IPython.

FATHOM_IPYTHON names a Python of the matrix with IPython in it; without it, the one that runs the tests is
tried.
"""

import os
import re
import sys
import textwrap

import pytest

import recordings
from conftest import PACKAGE
from launch import FATHOM, plain

PYTHON = os.environ.get("FATHOM_IPYTHON") or sys.executable

SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.colors = "NoColor"
def cell(text):
    done = shell.run_cell(text, store_history=True)
    return done.result if done.success else "failed"
cell("def f(n, text=''):\\n    total = 0\\n    for i in range(n):\\n        total += i\\n"
     "    return total")
cell("%load_ext fathom")
"""


@pytest.fixture
def shell(tmp_path):
    """Run code in a shell with the extension; what it printed."""
    if plain(PYTHON, "-c", "import IPython").returncode != 0:
        pytest.skip(f"no IPython in {PYTHON} (FATHOM_IPYTHON names a Python that has it)")

    def call(code):
        script = tmp_path / "shell.py"
        script.write_text(SHELL + textwrap.dedent(code))
        done = plain(PYTHON, script, cwd=tmp_path, env=dict(
            os.environ, PYTHONPATH=PACKAGE, IPYTHONDIR=str(tmp_path / "ipython"), TERM="dumb"))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return call


@pytest.fixture
def memory_shell(shell, tmp_path):
    """The same, with its memory recorded."""

    def call(code):
        script = tmp_path / "shell.py"
        script.write_text(SHELL + textwrap.dedent(code))
        done = plain(FATHOM, "run", "-q", "-o", tmp_path / "shell.fathom", "--memory", "--python", PYTHON, script, cwd=tmp_path,
                     env=dict(os.environ, PYTHONPATH=PACKAGE, IPYTHONDIR=str(tmp_path / "ipython"), TERM="dumb"))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return call


def rows(printed):
    """[(line, hits, source)] of the lines with hits in a table of line_profiler's layout."""
    found = []
    for line in printed.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[0].isdigit() and words[1].isdigit():
            found.append((int(words[0]), int(words[1]), words[5]))
    return found


F = [(2, 1, "total = 0"), (3, 11, "for i in range(n):"), (4, 10, "total += i"),
     (5, 1, "return total")]


@pytest.mark.parametrize("statement", ["f(10)", "f(10, 'a b')", 'f(10, "a b")', 'f(10, "it\\\'s")'])
def test_lprun(shell, statement):
    printed = shell(f"cell('''%lprun -f f {statement}''')")
    assert rows(printed) == F
    assert "Function: f at line 1" in printed


def test_lprun_writes_and_returns(shell, tmp_path):
    printed = shell("""
        p = cell("%lprun -r -u 1e-6 -D out.lprof -T out.txt -f f f(10)")
        print(type(p), cell("%lprun -D out.fathom -f f f(3)"))
    """)
    assert "fathom._line_profiler.LineProfiler" in printed and "Timer unit: 1e-06 s" in printed
    assert rows((tmp_path / "out.txt").read_text()) == F
    for name, rounds in (("out.lprof", 10), ("out.fathom", 3)):
        function, = recordings.report(tmp_path / name, "--lines")["functions"]
        assert {r["line"]: r["hits"] for r in function["lines"] if r["hits"]} == \
            {2: 1, 3: rounds + 1, 4: rounds, 5: 1}


def test_lprun_with_a_module_and_the_decorator(shell):
    printed = shell("""
        cell("import textwrap")
        cell("%lprun -z -m textwrap textwrap.dedent(' a')")
        cell("%lprun exec('@profile\\\\ndef g():\\\\n    return 1\\\\ng(); g()')")
    """)
    assert "Function: dedent at line" in printed and "Function: TextWrapper" not in printed
    assert re.search(r"^ +3 +2 +\d", printed, re.M)  # g has no file: numbers without source


@pytest.mark.parametrize("arguments, message", [
    ("-f nothing f(1)", "Could not find function nothing"),
    ("-f len f(1)", "len has no Python code"),
    ("-m no_such_module f(1)", "Could not find module no_such_module"),
    ("-u x -f f f(1)", "-u takes a number of seconds, not 'x'"),
])
def test_lprun_says_what_is_wrong(shell, arguments, message):
    assert message in shell(f"assert cell({'%lprun ' + arguments!r}) == 'failed'")


def test_prun_has_the_options_of_ipythons_own(shell, tmp_path):
    printed = shell("""
        s = cell("%prun -r -q -D out.prof -T out.txt -s cumulative f(10)")
        import pstats
        assert isinstance(s, pstats.Stats) and len(pstats.Stats("out.prof").stats) == len(s.stats)
        cell("%prun -l 2 f(10)")
        cell("%%prun\\nf(1)\\nf(2)")
    """)
    assert "Ordered by: cumulative time" in (tmp_path / "out.txt").read_text()
    assert "Ordered by: internal time" in printed and "due to restriction <2>" in printed
    assert "        2    0.000" in printed  # two calls of f in the cell


def test_a_cell_line_by_line(shell):
    printed = shell("""
        cell('''%%fathom
        def g(n):
            x = n + 1
            return x
        for k in range(3):
            g(k)
        answer = g(10) * 2
        answer + 20''')
        print("ANSWER", shell.user_ns["answer"], "_fathom_value" in shell.user_ns)
    """.replace("\n        ", "\n"))
    assert "ANSWER 22 False" in printed and ": 42" in printed
    assert rows(printed) == [
        (1, 1, "def g(n):"), (4, 4, "for k in range(3):"), (5, 3, "g(k)"),
        (6, 1, "answer = g(10) * 2"), (7, 1, "answer + 20"), (2, 4, "x = n + 1"), (3, 4, "return x")]


def test_a_cell_that_fails_or_exits(shell):
    printed = shell("""
        assert cell("%%fathom\\n1/0") == "failed"
        cell("%%fathom\\nimport sys\\nsys.exit(3)")
        assert cell("%%fathom -x\\n1") == "failed"
    """)
    assert "ZeroDivisionError" in printed
    assert "*** SystemExit exception caught in code being profiled." in printed


def test_unloading_puts_back_what_was_there(shell):
    printed = shell("""
        cell("%unload_ext fathom")
        assert cell("%lprun -f f f(1)") == "failed"
        cell("%prun f(1)")
    """)
    assert "_lsprof" in printed or "cProfile" in printed


def test_memit(shell):
    """As memory_profiler prints it: the highest, and by how much that is above what was there."""
    printed = shell("""
    cell("import time")
    cell("%memit -i 0.02 held = b'x' * (60 << 20); time.sleep(.3); del held")
    cell("%%memit kept = b'x' * (90 << 20)\\nheld = b'x' * (60 << 20)\\ntime.sleep(.3)")
    result = cell("%memit -q -o -r 2 1 + 1")
    print(repr(result.mem_usage), result.repeat, result.baseline <= max(result.mem_usage))
    """)
    lines = [re.fullmatch(r"peak memory: ([\d.]+) MiB, increment: ([\d.]+) MiB", line)
             for line in printed.splitlines()]
    found = [tuple(map(float, match.groups())) for match in lines if match]
    assert len(found) == 2
    assert 60 <= found[0][1] < 65 and 60 <= found[1][1] < 65
    assert found[1][0] > 150
    assert re.search(r"^\[[\d.]+, [\d.]+\] 2 True$", printed, re.M)


GROW = '''
        cell("def grow(n):\\n    kept = []\\n    for i in range(n):\\n        kept.append(bytes(2 << 20))\\n"
             "    b = bytes(5 << 20); del b\\n    return len(kept)")
        '''


@pytest.fixture(params=["run", "plain"])
def both_shells(request, shell, memory_shell):
    return memory_shell if request.param == "run" else shell


def test_mprun(both_shells, tmp_path):
    printed = both_shells(GROW + """
        found = cell("%mprun -r -T table.txt -f grow grow(3)")
        print(type(found).__name__)
        """)
    table = (tmp_path / "table.txt").read_text()
    assert table.rstrip() in printed and "LineProfiler" in printed
    assert table.splitlines()[2].split() == "Line # Mem usage Increment Occurrences Transient Line Contents".split()
    lines = {int(words[0]): words[1:] for words in map(str.split, table.splitlines()[4:]) if len(words) > 6 and words[2] == "MiB"}
    assert lines[4][2:7] == ["6.0", "MiB", "3", "2.0", "MiB"]
    assert lines[5][2:7] == ["0.0", "MiB", "1", "5.0", "MiB"]
    assert lines[6][2:5] == ["0.0", "MiB", "1"]
    assert float(lines[4][0]) == pytest.approx(float(lines[6][0]), abs=0.11)


def test_mprun_again_and_again(shell):
    """Each has its own recording, by which Mem usage begins with nothing, and which is over with it."""
    printed = shell(GROW + """
        import fathom, threading
        for n in 1, 4, 2:
            cell(f"%mprun -f grow grow({n})")
            print(bool(fathom.memory_snapshot()))
        """)
    rows = re.findall(r"^ +4 +([\d.]+) MiB +([\d.]+) MiB +(\d+) +2.0 MiB ", printed, re.M)
    assert [row[1:] for row in rows] == [("2.0", "1"), ("8.0", "4"), ("4.0", "2")]
    assert all(float(increment) <= float(usage) < float(increment) + 1 for usage, increment, _ in rows)
    assert "True" not in printed


def test_mprun_where_nothing_can_be_recorded_says_so(shell):
    printed = shell(GROW + """
        import os
        os.environ["FATHOM_TMPDIR"] = "/no/such/folder"
        cell("%mprun -f grow grow(3)")
        """)
    assert "fathom run --memory -m IPython" in printed and "No such file" in printed
