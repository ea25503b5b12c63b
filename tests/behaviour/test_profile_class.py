"""fathom.Profile drops in for cProfile.Profile; fathom.profile is one line for an application."""

import os

import recordings
from conftest import PACKAGE
from launch import plain

WORK = """
import time
def leaf(): time.sleep(0.002)
def work(n):
    for _ in range(n): leaf()
    return n * 2
"""


def test_it_has_every_method_of_cprofile(inside):
    missing, wrong = inside("""
import cProfile, inspect
public = [n for n in dir(cProfile.Profile) if not n.startswith("_")]
missing = [n for n in public if not hasattr(fathom.Profile, n)]
wrong = [n for n in ("__enter__", "__exit__") if not hasattr(fathom.Profile, n)]
result = [missing, wrong]
""")
    assert missing == [] and wrong == []


def test_runcall_with_and_enable_disable(inside):
    result = inside(WORK + """
def calls(p):
    p.create_stats()
    return {k[2]: v[:2] for k, v in p.stats.items()}
a = fathom.Profile(); value = a.runcall(work, 3)
with fathom.Profile() as b: work(2)
c = fathom.Profile(); c.enable(); work(1); c.disable(); work(9); c.enable(); work(2); c.disable()
d = fathom.Profile(); d.runctx("work(n)", {"work": work, "n": 4}, {})
result = [value] + [calls(p)["leaf"] for p in (a, b, c, d)]
""")
    assert result == [6, [3, 3], [2, 2], [3, 3], [4, 4]]


def test_stats_are_the_dictionary_that_pstats_reads(inside):
    text, total, top = inside(WORK + """
import io, pstats
p = fathom.Profile(); p.runcall(work, 5)
out = io.StringIO()
stats = pstats.Stats(p, stream=out)
stats.sort_stats("cumulative").print_stats("work|leaf").print_callers("sleep")
result = [out.getvalue(), stats.total_calls, stats.stats[("~", 0, "<built-in method time.sleep>")][:2]]
""")
    assert "Ordered by: cumulative time" in text and "(leaf)" in text
    assert top == [5, 5]
    assert total >= 11  # work, 5 leaf, 5 sleep, and the end of recording


def test_print_stats_takes_sort_like_cprofile(python, tmp_path):
    script = tmp_path / "p.py"
    script.write_text(WORK + "import fathom\np = fathom.Profile()\np.runcall(work, 2)\n"
                             "p.print_stats('calls')\np.print_stats(('name', 'time'))\n")
    done = plain(python, script, env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert "Ordered by: call count" in done.stdout
    assert "Ordered by: function name, internal time" in done.stdout


def test_dump_stats_writes_pstats_or_a_recording(inside, tmp_path):
    inside(WORK + f"""
import pstats
p = fathom.Profile(); p.runcall(work, 3)
p.dump_stats({str(tmp_path / "a.prof")!r})
p.dump_stats({str(tmp_path / "a.fathom")!r})
assert pstats.Stats({str(tmp_path / "a.prof")!r}).total_calls >= 7
result = 0
""")
    for name in ("a.prof", "a.fathom"):
        rows = {f["name"]: f["calls"] for f in recordings.report(tmp_path / name)["functions"]}
        assert rows["leaf"] == 3 and rows["<built-in method time.sleep>"] == 3, name


def test_getstats_has_code_objects_and_edges(inside):
    result = inside(WORK + """
p = fathom.Profile(); p.runcall(work, 4)
entries = {getattr(e.code, "co_name", e.code): e for e in p.getstats()}
w = entries["work"]
sub = {getattr(s.code, "co_name", s.code): s for s in w.calls}
result = [w.code is work.__code__, w.callcount, w.reccallcount, sub["leaf"].callcount,
          w.totaltime >= sub["leaf"].totaltime > 0, entries["<built-in method time.sleep>"].calls]
""")
    assert result == [True, 1, 0, 4, True, None]


def test_a_timer_of_ones_own(inside):
    """A counting timer gives exact times: every reading is one tick further."""
    result = inside("""
def make(unit):
    ticks = iter(range(10_000))
    return fathom.Profile(lambda: next(ticks), unit)
def f(): pass
out = []
for unit in (0.5, 0.001):
    p = make(unit)
    p.enable(); f(); f(); p.disable()
    p.create_stats()
    row = [v for k, v in p.stats.items() if k[2] == "f"][0]
    out.append([row[1], row[3]])
result = out
""")
    # Two calls; between entry and exit of f the timer is read once each: one tick per call.
    assert result == [[2, 1.0], [2, 0.002]]


def test_builtins_and_subcalls_can_be_switched_off(inside):
    names, callers = inside(WORK + """
p = fathom.Profile(builtins=False); p.runcall(work, 2); p.create_stats()
q = fathom.Profile(subcalls=False); q.runcall(work, 2); q.create_stats()
result = [[k[2] for k in p.stats], [len(v[4]) for v in q.stats.values()]]
""")
    assert "leaf" in names and not [n for n in names if "time.sleep" in n]
    assert set(callers) == {0}


def test_clear_forgets_and_snapshot_does_not_stop(inside):
    result = inside(WORK + """
p = fathom.Profile()
p.enable(); work(3); p.snapshot_stats(); first = p.stats; work(2); p.disable(); p.create_stats(); second = p.stats
p.clear(); p.enable(); work(1); p.disable(); p.create_stats()
leaf = lambda s: [v[1] for k, v in s.items() if k[2] == "leaf"]
result = [leaf(first), leaf(second), leaf(p.stats)]
""")
    assert result == [[3], [5], [1]]


def test_two_profiles_at_once_and_many_after_each_other(inside):
    result = inside(WORK + """
a, b = fathom.Profile(), fathom.Profile()
a.enable(); work(1); b.enable(); work(2); b.disable(); a.disable()
def leaf_calls(p):
    p.create_stats()
    return [v[1] for k, v in p.stats.items() if k[2] == "leaf"]
both = [leaf_calls(a), leaf_calls(b)]
del a, b
for i in range(20):
    with fathom.Profile() as p: work(1)
    assert leaf_calls(p) == [1]
result = both
""")
    assert result == [[3], [2]]


def test_all_threads_are_in_it(inside):
    result = inside("""
import threading
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
before = threading.Event()
waiting = threading.Thread(target=lambda: (before.wait(), fib(5)))
waiting.start()
p = fathom.Profile(); p.enable()
before.set()
late = threading.Thread(target=fib, args=(6,)); late.start(); late.join(); waiting.join()
p.disable(); p.create_stats()
result = [v[:2] for k, v in p.stats.items() if k[2] == "fib"]
""")
    assert result == [[2, 15 + 25]]


def test_profile_as_context_manager_decorator_and_nothing(inside, tmp_path):
    inside(WORK + f"""
import os
with fathom.profile({str(tmp_path / "with.fathom")!r}): work(2)
@fathom.profile({str(tmp_path / "call.prof")!r})
def main(n): return work(n)
assert main(3) == 6 and main.__name__ == "main"
for nothing in (None, ""):
    with fathom.profile(nothing): work(1)
    assert fathom.profile(nothing)(work) is work
try:
    with fathom.profile({str(tmp_path / "with.fathom")!r}): raise SystemError
except FileExistsError as error:
    result = str(error)
""")
    assert recordings.one(tmp_path / "with.fathom", "leaf")["calls"] == 2
    rows = {f["name"]: f["calls"] for f in recordings.report(tmp_path / "call.prof")["functions"]}
    assert rows["leaf"] == 3


def test_profile_writes_also_when_the_block_raises(inside, tmp_path):
    inside(WORK + f"""
try:
    with fathom.profile({str(tmp_path / "x.fathom")!r}):
        work(2)
        raise ValueError
except ValueError:
    result = 0
""")
    assert recordings.one(tmp_path / "x.fathom", "leaf")["calls"] == 2


def test_an_unwritable_place_is_an_oserror_with_a_sentence(inside):
    message = inside(WORK + """
try:
    with fathom.profile("/nonexistent/folder/x.fathom"): work(1)
except OSError as error:
    result = str(error)
""")
    assert "/nonexistent/folder" in message


def test_a_profile_inside_fathom_run(python, tmp_path):
    """Both see all calls; neither disturbs the other."""
    from launch import run
    script = tmp_path / "both.py"
    script.write_text(WORK + "import fathom\np = fathom.Profile()\nwork(1)\np.runcall(work, 2)\n"
                             "work(3)\np.create_stats()\n"
                             "print([v[1] for k, v in p.stats.items() if k[2] == 'leaf'])\n")
    done = run("--calls", script, python=python, output=tmp_path / "o.fathom",
               env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.stdout == "[2]\n", done.stderr
    assert recordings.one(tmp_path / "o.fathom", "leaf")["calls"] == 6


def test_importing_the_package_costs_no_threads_and_no_hooks(inside):
    result = inside("""
import threading
result = [threading.active_count(), sys.getprofile() is None, sys.gettrace() is None]
""")
    assert result == [1, True, True]


def test_it_survives_threads_forks_and_code_that_come_and_go(python):
    from launch import program
    done = plain(python, "-W", "ignore", program("stress.py"),
                 env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr
