"""The newest function of every sample, and the oldest: the oracle's second edition, in short.

A stack that lost its newest frame looks like its caller's, so the test of possible stacks does not
see it. Here are programs whose leaf is known to have nearly all the time (tests/oracle/programs), a
second of each at the default rate, and one real run in which exact and sampled shares are compared.
How busy the machine is does not matter to either: both are shares of what ran, measured for as long
as it takes to have enough samples (enough.py).
tests/oracle/judge.py and compare.py are the long and strict versions, with the peers; the last
tests here are of these tools themselves, with numbers made by hand.
"""

import math
import sys

import pytest

import enough
import pythons
from launch import REPO, own_run_folders  # noqa: F401 (a fixture)

sys.path.insert(0, str(REPO / "tests" / "oracle"))

import compare  # noqa: E402
import judge  # noqa: E402
import looks  # noqa: E402
import packages  # noqa: E402
import profilers  # noqa: E402
import truth  # noqa: E402

VERSIONS = pythons.SAMPLED_VERSIONS
RATE, SECONDS = 1000.0, 0.8
LEAST_SAMPLES = 300
LEAST_SEEN = 0.8     # of the looks that were asked for
LEAST_DUE = 12       # samples of a function that was not seen, beyond the looks that were not made, to call it lost
MISSING_MOST = 0.02  # of the tops, beyond what chance makes: with 800 samples of many short functions some 3 %
RAREST = 200         # one wrong stack in so many


@pytest.fixture(scope="module")
def interpreters():
    return truth.interpreters()


def interpreter_for(name, version, interpreters):
    """Skips, with the reason, what cannot run here; installs nothing."""
    if version not in interpreters:
        pytest.skip(f"no CPython {version} on this machine (tools/pythons provide, or pyenv)")
    needs = truth.needs(truth.PROGRAMS / f"{name}.py")
    if not needs:
        return interpreters[version]
    folder = profilers.cache_folder() / f"real-{version}"
    python = folder / "bin" / "python"
    if not all(packages.installed(python, package) for package in needs if python.exists()) \
            or not python.exists():
        pytest.skip(f"{', '.join(needs)} is not installed; tests/oracle/judge.py does that")
    return str(python)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", truth.WHOLE)
def test_stacks_are_whole(name, version, interpreters, tmp_path):
    python = interpreter_for(name, version, interpreters)

    def measure(seconds):
        with truth.Program(name, python) as program:
            start = truth.now_ns()
            profile = profilers.ALL["fathom"].profile(program.pid, RATE, seconds, tmp_path / "profile", "wall")
            end = truth.now_ns()
            program.finish()
            verdict = truth.judge(program, profile, start, end)
        enough.want(verdict.samples, LEAST_SAMPLES, "samples")
        enough.want(1 - profile.unseen, LEAST_SEEN, "of the looks asked for")
        return profile, verdict

    try:
        profile, verdict = enough.measured(measure, SECONDS)
    except truth.Unable as reason:
        pytest.skip(str(reason))
    assert verdict.cut <= 1 + verdict.samples // RAREST
    assert verdict.impossible <= 1 + verdict.samples // RAREST, verdict.examples
    unmade = profile.unseen * RATE * (profile.window[1] - profile.window[0]) / 1e9
    lost = [top for top in verdict.tops
            if top.missing > top.due / 2 and (top.samples >= 8 or top.due >= LEAST_DUE + unmade)]
    assert not lost
    assert (verdict.missing_tops or 0) <= MISSING_MOST + verdict.missing_by_chance, verdict.tops


PROGRAM = """
import sys, time

def producer(count):
    for _ in range(count):
        x = 0
        for i in range(2000):
            x += i & 3
        yield x

def plain(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x

def by_key(count):
    return -count

def real_work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(producer(5))
        ",".join(str(x) for x in range(3000) if not x % 300)
        plain(6000)
        sorted(range(100), key=by_key)

real_work(float(sys.argv[1]))
"""


@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_sampled_shares_are_the_exact_ones(version, interpreters, tmp_path):
    if version not in interpreters:
        pytest.skip(f"no CPython {version} on this machine (tools/pythons provide)")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def measure(seconds):
        run = compare.Run(version, interpreters[version], [str(script), str(seconds)], "real_work", tmp_path)
        exact, sampled = run.fathom(RATE)
        enough.want(sampled.samples, LEAST_SAMPLES, "samples")
        return exact, sampled

    exact, sampled = enough.measured(measure, SECONDS)
    # 50 ns is about what the collector's part of a call is; there are few calls here.
    result = compare.compare(exact, sampled, 50.0)
    assert result.distance <= 0.10 + 2 * result.spread, result


# ---------------------------------------------------------------- the tools themselves

def made_program(says, logs):
    program = object.__new__(truth.Program)
    program.name, program.says, program.logs = "made", says, logs
    return program


def stack(*functions):
    return tuple((name, "made.py", 1) for name in functions)


SAYS = {"paths": [["<module>", "main", "caller", "leaf"], ["<module>", "main", "other", "deep", "deep"]],
        "modules": [], "shares": {}, "pid": 1,
        "tops": {"caller": {"path": ["<module>", "main", "caller", "leaf"], "leaf": "l", "rest": "r"},
                 "other": {"path": ["<module>", "main", "other", "deep", "deep"], "leaf": "m",
                           "rest": "s", "least": True}}}
# Of each 100 ns, 45 and 5 belong to the first, 40 and 10 to the second.
LOGS = [{"labels": ["r", "l", "s", "m"],
         "stamps": [n for k in range(1000) for n in (100 * k, 100 * k + 5, 100 * k + 50, 100 * k + 60,
                                                     100 * k + 100)]}]


def tops_of(*stacks):
    verdict = truth.judge(made_program(SAYS, LOGS), profilers.Profile(list(stacks)), 0, 100_000)
    return verdict, {top.name: top for top in verdict.tops}


def test_missing_tops_are_seen():
    caller, whole = stack("<module>", "main", "caller"), stack("<module>", "main", "caller", "leaf")
    deep = stack("<module>", "main", "other", "deep", "deep")
    verdict, tops = tops_of((whole, 450), (caller, 50), (deep, 500))
    assert (tops["caller"].true, tops["caller"].seen, tops["caller"].due) == (0.9, 0.9, 500)
    assert verdict.missing_tops == 0  # the second has more than its clock says, which is the least it has
    assert verdict.impossible == 0
    verdict, tops = tops_of((whole, 150), (caller, 350), (deep, 400), (deep[:-1], 100))
    assert tops["caller"].missing == pytest.approx(300)
    assert tops["caller"].instead == "<module>;main;caller"
    assert tops["other"].missing == 0  # 80 % have all levels of it, as its clock says
    assert verdict.missing_tops == pytest.approx(0.3)
    # Each is 500 of 1,000: √(250,000 · (0.09 + 0.16) / 500) / 1,000, and 2.58 times that.
    assert verdict.missing_by_chance == pytest.approx(0.0288, abs=0.0001)
    # A recursion that is cut has its function as the newest nevertheless; what was never seen is missing.
    verdict, tops = tops_of((deep[:-1], 500))
    assert tops["other"].missing == pytest.approx(0.8 * 250)
    assert tops["caller"].missing == pytest.approx(0.9 * 250)
    assert judge.is_missing({"name": "x", "true": 0.9, "seen": 0.3, "samples": 500})
    assert not judge.is_missing({"name": "x", "true": 0.9, "seen": 0.88, "samples": 500})


def test_stacks_without_their_root_are_counted():
    thread = (("Thread._bootstrap", "/lib/threading.py", 5), ("main", "made.py", 2))
    elsewhere = (("_bootstrap", "made.py", 5),)
    verdict, _ = tops_of((stack("<module>", "main"), 5), (stack("main", "caller"), 3), ((), 2),
                         (thread, 7), (elsewhere, 1))
    assert (verdict.samples, verdict.cut, verdict.empty) == (18, 6, 2)
    program = made_program({**SAYS, "roots": ["caller", ""]}, LOGS)
    verdict = truth.judge(program, profilers.Profile([(stack("caller", "leaf"), 3), ((), 2)]), 0, 1)
    assert verdict.cut == 0


def test_skipped_programs_are_no_failures():
    row = {"profiler": "fathom", "rate": 1000.0, "python": "3.12", "program": "x", "skipped": "no reason"}
    assert "0/0" in judge.summary([row]) and "skipped: no reason" in judge.details([row])
    assert judge.line_of(row).endswith("skipped: no reason")


def test_deviation_by_chance_is_that_of_a_binomial():
    for n, p in ((1, 0.5), (2, 0.5), (4, 0.25), (10, 0.03), (50, 0.98), (7, 1 / 7)):
        mean = sum(math.comb(n, k) * p ** k * (1 - p) ** (n - k) * abs(k / n - p) for k in range(n + 1))
        assert compare.deviation_by_chance(p, n) == pytest.approx(mean)
    assert compare.deviation_by_chance(0, 9) == compare.deviation_by_chance(1, 9) == 0


def row(node, parent, name, self_ns, calls=1, resumes=0, file="a.py", line=1):
    return {"node": node, "parent": parent, "name": name, "file": file, "line": line,
            "self_ns": self_ns, "calls": calls, "resumes": resumes}


TREE = [row(0, None, "<thread>", 0, 0, file=""), row(1, 0, "<module>", 900),
        row(2, 1, "real_work", 100, line=3), row(3, 2, "<built-in method builtins.sum>", 50, file=""),
        row(4, 3, "gen", 600, calls=1, resumes=4, line=5), row(5, 2, "f", 250, calls=10, line=9),
        row(6, 0, "<built-in method x>", 7, file="")]
WORK, GEN, F = ("real_work", "a.py", 3), ("gen", "a.py", 5), ("f", "a.py", 9)


def test_exact_shares_give_c_functions_to_their_callers():
    exact = compare.exact_of(TREE, "real_work")
    assert exact.self_ns == {WORK: 150, GEN: 600, F: 250}
    assert (exact.entries, exact.made) == ({GEN: 5, F: 10}, {WORK: 15})
    assert exact.share(WORK, 0) == 0.15 and exact.share(GEN, 0) == 0.6
    # 4 ns of each call or resume are moved to what is called.
    assert [exact.share(key, 4) for key in (WORK, GEN, F)] == [0.09, 0.62, 0.29]
    assert exact.doubt(WORK, 4) == pytest.approx(0.02)
    assert compare.exact_of(TREE, None).self_ns[("<module>", "a.py", 1)] == 900


def test_distance_is_what_chance_does_not_explain():
    exact = compare.exact_of(TREE, "real_work")
    right = compare.Sampled()
    for key, samples in ((WORK, 150), (GEN, 600), (F, 250)):
        right.add(key, samples * 2.0, samples)
    result = compare.compare(exact, right, 0)
    assert (result.samples, result.raw, result.off) == (1000, 0, [])
    assert -0.03 < result.distance < 0
    # The generator is not seen, its time is its caller's.
    rows = [
        {"name": "real_work", "file": "a.py", "line": 3, "samples": 750,
         "states_ns": {"c": 700, "python": 50}},
        {"name": "f", "file": "a.py", "line": 9, "samples": 250, "states_ns": {"c": 0, "python": 250}}]
    lost = compare.sampled_by_fathom(rows, exact, "real_work")
    result = compare.compare(exact, lost, 0)
    assert result.raw == pytest.approx(0.6) and 0.55 < result.distance < 0.6
    assert {each["function"] for each in result.off} == {"real_work", "gen"}
    # What a price of 4 ns explains is no distance, and the factor that fits best is found.
    moved = compare.Sampled({WORK: 90, GEN: 620, F: 290}, 1000)
    assert compare.compare(exact, moved, 4).raw == pytest.approx(0, abs=1e-9)
    assert compare.compare(exact, moved, 4.8).raw == pytest.approx(0, abs=0.002)


def test_lines_that_ran_lead_to_their_functions():
    exact = compare.Exact({("f", "a.py", 2): 1, ("f", "a.py", 20): 1, ("g", "b.py", 1): 1})
    stacks = [((("real_work", "a.py", 1), ("f", "a.py", 19)), 3),
              ((("real_work", "a.py", 1), ("C.f", "a.py", 25)), 4),
              ((("f", "a.py", 25),), 50), ((("real_work", "a.py", 1), ("h", "a.py", 7)), 1)]
    sampled = compare.sampled_in_stacks(stacks, exact, "real_work")
    assert sampled.weights == {("f", "a.py", 2): 3, ("f", "a.py", 20): 4, ("h", "a.py", 0): 1}
    assert sampled.samples == 8
    # Of a whole program, what was never called while calls were recorded was before that.
    sampled = compare.sampled_in_stacks(stacks, exact, None)
    assert sampled.weights == {("f", "a.py", 2): 3, ("f", "a.py", 20): 54}


def test_looks_are_put_beside_the_clock():
    says = {"pid": 7, "shares": {"all": ["a", "b"]},
            "tops": {"in_x": {"path": ["<module>", "~", "in_x", "x"], "leaf": "x leaf", "rest": "x rest"}}}
    logs = [{"labels": ["a", "b"], "stamps": [100, 200, 300, 400, 500, 600]},
            {"labels": ["x rest", "x leaf"], "stamps": [300, 310, 390]}]
    text = ("150 7 7 displaced python <module>;main;a\n"       # right
            "250 7 7 displaced python <module>;main;Class.a\n" # 50 ns inside of b
            "290 7 7 gil gil <module>;main\n"                  # 10 ns inside of b, nothing seen
            "305 7 7 plain c <module>;lib;in_x\n"              # right: the callee is not there yet
            "350 7 7 plain c <module>;lib;in_x\n"              # its newest function is missing
            "360 7 7 stopped c <module>;lib;in_x;x\n"          # right
            "395 7 7 plain c <module>\n"                       # right: between
            "550 7 7 lost other\n"
            "150 8 8 plain c <module>;main;b\n"                # of another process
            "560 7 7 plain")                                   # cut off
    found = looks.read(text, 7)
    assert [look.ns for look in found] == [150, 250, 290, 305, 350, 360, 395, 550]
    judged = looks.judge(says, logs, found)
    assert [(each.was, each.seen, each.inside_ns) for each in judged] == [
        ("a", "a", 50), ("b", "a", 50), ("b", "between", 10), ("x rest", "x rest", 5),
        ("x leaf", "x rest", 40), ("x leaf", "x leaf", 30), ("between", "between", 5)]
    assert [each.look.ns for each in looks.worst(judged, 2)] == [250, 350]
    text = looks.shown(says, logs, found, 5)
    assert "| lost" in text and "was b, 0.1 µs from its edge; seen a: <module>;main;Class.a" in text


def test_looks_find_the_clock_of_each_thread():
    says = {"pid": 7, "shares": {"one": ["a"], "two": ["b"]}}
    logs = [{"labels": ["a"], "stamps": [100, 500]}, {"labels": ["b"], "stamps": [200, 600]}]
    found = looks.read("250 7 1 plain c m;b\n300 7 2 plain c m;a\n350 7 1 plain c m;b\n"
                       "400 7 1 plain c m;a\n550 7 2 plain c m;a\n")
    assert [(each.look.tid, each.was, each.seen) for each in looks.judge(says, logs, found)] == [
        (1, "b", "b"), (2, "a", "a"), (1, "b", "b"), (1, "b", "a")]
