"""The program's own profile functions, trace functions and monitoring tools: they work as without
Fathom, and what they do costs it nothing of what it records."""

import re

import pytest
import recordings
from launch import plain, program, run

COLLECTORS = [("--calls",), ("--calls", "--no-c-calls"), ("--lines",), ("--calls", "--lines=all")]


@pytest.fixture
def record(python, tmp_path):
    """Run a program plain and under Fathom, which changes nothing; gives output and recording."""

    def call(*words, collectors=("--calls",), same=lambda text: text):
        path = tmp_path / "o.fathom"
        alone = plain(python, *words)
        done = run("--", python, *words, output=path, collectors=collectors)
        assert (alone.returncode, alone.stderr) == (0, "")
        assert (done.returncode, done.stderr) == (0, "")
        assert same(done.stdout) == same(alone.stdout)
        return alone.stdout, path

    return call


def is_3_11(python):
    return "3.11" in python


def calls_of(path, file):
    """{name: calls} of the functions of a file."""
    return {row["name"]: row["calls"] for row in recordings.report(path)["functions"]
            if row["file"].endswith(file)}


def hits_of(path, file):
    return {row["name"]: {line["line"]: line["hits"] for line in row["lines"] if line["hits"]}
            for row in recordings.report(path, "--lines")["functions"]
            if row["file"].endswith(file)}


def callers_of(path, name):
    rows = recordings.report(path, f"--callers={name}")["functions"]
    return {caller["name"]: caller["calls"] for row in rows for caller in row["callers"]}


@pytest.mark.parametrize("collectors", COLLECTORS)
def test_profile_functions_hear_what_they_would_hear_alone(python, record, collectors):
    events, path = record(program("own_profiler.py"), collectors=collectors)
    assert "c_return len" in events and "c_exception" in events
    assert recordings.report(path)["notes"] == []
    if "--calls" in collectors:
        # loop() 12, replaced() 1, threads() 6, all_threads() 1 where there is that, refused() 8
        assert calls_of(path, "own_profiler.py")["work"] == (27 if is_3_11(python) else 28)


@pytest.mark.parametrize("collectors", COLLECTORS)
def test_trace_functions_hear_what_they_would_hear_alone(record, collectors):
    events, path = record(program("own_tracer.py"), collectors=collectors)
    assert "generates exception" in events
    assert recordings.report(path)["notes"] == []
    if "--lines" in collectors[-1]:
        hits = hits_of(path, "own_tracer.py")
        # work() is called 8 times, and half of its last statement is a lambda for 3 items
        assert hits["work"][26] == hits["work"][37] == 8
        assert hits["raises"] == {19: 8, 20: 8, 22: 8}
        assert sum(hits["<lambda>"].values()) == 24


@pytest.mark.parametrize("module", ["profile", "cProfile"])
def test_the_profilers_of_the_standard_library(python, record, tmp_path, module):
    """Their tables have the same numbers of calls. Addresses in names differ from run to run."""
    script = tmp_path / "fib.py"
    script.write_text("""
import json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(10), json.loads(json.dumps([1, {"a": 2}])))
""")

    def table(text):
        rows = re.findall(r"^ +([\d/]+) +[\d.]+ .* (\S+)$", text, re.MULTILINE)
        return sorted(row for row in rows if "0x" not in row[1])

    text, path = record("-m", module, script, same=table)
    assert ("177/1", f"{script.name}:3(fib)") in table(text)
    if module == "profile" or not is_3_11(python):  # whose cProfile takes the only hook
        assert calls_of(path, "fib.py")["fib"] == 177


@pytest.mark.parametrize("collectors", COLLECTORS)
def test_what_a_raising_function_keeps_from_others_is_recorded(record, collectors):
    """Of 54 trials each ends with a call of after(), whatever was refused in it before."""
    _, path = record(program("raising_tools.py"), collectors=collectors)
    assert callers_of(path, "after") == {"trial": 54}
    assert recordings.report(path)["notes"] == []
    if "--calls" in collectors:
        # Nine trials each. Three of them end catches() before it calls returns(); recurses() calls
        # itself twice, and then raises(), but for those three. A generator's resumes are calls.
        calls = calls_of(path, "raising_tools.py")
        assert calls["trial"] == calls["after"] == 54
        assert calls["catches"] == calls["calls_c"] == 9
        assert calls["returns"] == calls["raises"] == 9 + 6
        assert calls["recurses"] == 9 + 2 * 6
    if "--lines" in collectors[-1]:
        # A line that was refused does not count.
        hits = hits_of(path, "raising_tools.py")
        assert hits["returns"] == {10: 6 + 6} and hits["raises"] == {14: 6 + 6}
        assert hits["catches"] == {18: 6, 19: 6} and hits["recurses"] == {30: 18}
        assert hits["after"] == {38: 54} and hits["calls_c"] == {34: 6}
        assert hits["<module>"][58] == 7 and hits["<module>"][60] == 24
        assert hits["trial"][55] == 54
