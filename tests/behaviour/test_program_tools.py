"""The program's own profile functions, trace functions and monitoring tools: they work as without
Fathom, and what they do costs it nothing of what it records."""

import os
import re

import embedded
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


LIVES = r"""
#include <Python.h>
int main(int argc, char **argv)
{
    int rc = 0;
    for (int i = 0; i < 3; i++) {
        Py_Initialize();
        rc |= PyRun_SimpleString(argv[1]);
        Py_Finalize();
    }
    return rc;
}
"""

EVERYTHING = """
import sys
seen = []
def heard(frame, event, arg):
    seen.append((event, frame.f_code.co_name, getattr(arg, "__name__", "")))
def refuses(frame, event, arg):
    if event == "return": raise KeyError
    return refuses
def work(): return len("x")
def raises(): raise ValueError
sys.setprofile(heard); work(); sys.setprofile(None); work()
sys.settrace(refuses)
try: raises()
except (KeyError, ValueError): pass
sys.settrace(None)
if hasattr(sys, "monitoring"): sys.monitoring.free_tool_id(5)
print(seen)
"""


@pytest.mark.parametrize("collectors", COLLECTORS)
def test_an_interpreter_that_begins_anew(python, tmp_path, collectors):
    """Only its first life is recorded. In the others everything is as if nobody did."""
    host = embedded.build(python, tmp_path, LIVES)
    home = plain(python, "-c", "import sys; print(sys.base_prefix)").stdout.strip()
    alone = plain(host, EVERYTHING, env={**os.environ, "PYTHONHOME": home})
    done = run("--", host, EVERYTHING, output=tmp_path / "o.fathom", collectors=collectors,
               env={**os.environ, "PYTHONHOME": home})
    assert (alone.returncode, alone.stderr) == (0, "")
    assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, "")
    if "--calls" in collectors:
        calls = calls_of(tmp_path / "o.fathom", "<string>")
        assert calls["work"] == 2 and calls["raises"] == 1


@pytest.mark.parametrize("collectors", COLLECTORS)
def test_a_program_that_frees_our_monitoring_tool(python, record, tmp_path, collectors):
    if is_3_11(python):
        pytest.skip("3.11 has no sys.monitoring")
    script = tmp_path / "frees.py"
    script.write_text("""
import sys
tools = sys.monitoring
def before(): pass
def after(): pass
def frees():
    before()
    for tool in range(6):
        print(tools.free_tool_id(tool), tools.get_tool(tool))
    after()
before()
frees()
after()
for name in "free_tool_id", "clear_tool_id":
    for argument in 5, 9, 2**99, "5", None:
        try: print(getattr(tools, name)(argument))
        except Exception as error: print(repr(error))
tools.use_tool_id(5, "mine")
tools.register_callback(5, tools.events.PY_START, lambda code, at: print("start", code.co_name))
tools.set_events(5, tools.events.PY_START)
after()
""")
    text, path = record(script, collectors=collectors)
    assert text.endswith("start after\n")
    notes = recordings.report(path)["notes"]
    assert [(note["kind"], note["count"]) for note in notes] == [("lost", 1)]
    assert "monitoring tool, which the program freed" in notes[0]["text"]
    if "--calls" in collectors:
        calls = calls_of(path, "frees.py")
        assert calls["before"] == 2 and calls["frees"] == 1 and "after" not in calls
