"""`fathom run --memory=sampled`: estimates of a program whose blocks are known, with their errors.

An estimate that is right is within six standard errors of the truth but once in 500 million cases; ± is
two of them. How good the estimates are on average, and how often ± holds, tests/unit/test_sampled.c
says, of many seeds."""

import csv
import io
import json
import math
import re

import pytest

from launch import fathom, program, run

KNOWN = program("memory_sampled.py")
MARKS = {match[1]: number for number, line in enumerate(open(KNOWN), 1)
         if (match := re.search(r"  # ([a-z]+)$", line))}
HEADER = 33  # of a bytes object, with the byte behind it
INTERVAL = 16 << 10
SIXFOLD = 3  # of ±

# Bytes that were allocated, that were alive at the peak, and at the end.
LISTS = {"small": 20_000 * 8, "middling": 400 * 8, "peak": 20_000 * 8, "thread": 8_000 * 8}


def times(count, each):
    return count * (each + HEADER)


TRUTH = {
    "small": (times(20_000, 200), 1, 1),
    "middling": (times(400, 10_000), 1, 1),
    "large": (times(3, 3_000_000), 1, 1),
    "freed": (times(40_000, 400), 0, 0),
    "peak": (times(20_000, 1000), 1, 0),
    "malloc": (2000 * 3000, 1, 1),
    "realloc": (300 * 60_000, 0, 0),
    "thread": (times(8_000, 500), 1, 1),
    "mmap": (2 * (5 << 20), 1, 1),
}


def record(tmp_path, python, *words, mode=f"sampled:{INTERVAL}", name="out.fathom", seed=7):
    out = tmp_path / name
    done = run(f"--memory={mode}", "--seed", seed, "-f", KNOWN, *words, python=python, output=out,
               collectors=("--sample",))
    assert done.returncode == 0, done.stderr
    return out


def report(out, *words, at="all"):
    done = fathom("report", "--memory", "--json", "-n", "2000", "--at", at, *words, out)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lines_of(found):
    """Of the known program; before 3.12 a list that is built in brackets is a function of its own."""
    lines = {}
    for row in found["functions"]:
        if not row["file"].endswith("memory_sampled.py"):
            continue
        known = lines.setdefault(row["line"], {})
        for key, value in row.items():
            if key.endswith("_error_bytes"):
                known[key] = math.hypot(known.get(key, 0), value)
            elif isinstance(value, int) and key != "line":
                known[key] = known.get(key, 0) + value
    return lines


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The recording of the known program by interpreter; each is made once."""
    made = {}

    def call(python):
        if python not in made:
            made[python] = record(tmp_path_factory.mktemp("sampled"), python)
        return made[python]

    return call


def is_about(row, metric, truth, more=0):
    """Within six standard errors; `more` is what the line allocates besides, at most."""
    error = row[f"{metric}_error_bytes"]
    value = row[f"{metric}_bytes"]
    assert truth - SIXFOLD * error <= value <= truth + more + SIXFOLD * error, (value, truth, error)


@pytest.mark.parametrize("mark", TRUTH)
def test_lines_are_estimated(python, known, mark):
    row = lines_of(report(known(python)))[MARKS[mark]]
    allocated, at_peak, at_end = TRUTH[mark]
    grown = 20 * LISTS.get(mark, 0)  # a list grows by reallocating
    is_about(row, "allocated", allocated, grown + 2000)
    is_about(row, "peak", allocated * at_peak, LISTS.get(mark, 0) * 2 + 2000)
    is_about(row, "leaked", allocated * at_end, LISTS.get(mark, 0) * 2 + 2000)


def test_blocks_are_counted(python, known):
    rows = lines_of(report(known(python)))
    row = rows[MARKS["small"]]
    assert abs(row["leaked_blocks"] - 20_000) < 20_000 * SIXFOLD * row["leaked_error_bytes"] \
        / row["leaked_bytes"]


def test_large_blocks_and_mappings_are_certain(python, known):
    rows = lines_of(report(known(python)))
    for mark in ("large", "mmap"):
        # A sample or two may have met the list, or the objects of the mappings.
        assert 0 <= rows[MARKS[mark]]["leaked_bytes"] - TRUTH[mark][0] <= 2 * INTERVAL
        assert rows[MARKS[mark]]["leaked_error_bytes"] <= 2 * 2 * INTERVAL
    objects = report(known(python), "--memory=stats")["kinds"]
    mapped = next(kind for kind in objects if kind["name"] == "mmap")
    assert mapped["bytes"] >= TRUTH["mmap"][0] and mapped["bytes"] % 4096 == 0


def test_temporaries_are_estimated(python, known):
    row = lines_of(report(known(python)))[MARKS["freed"]]
    is_about(row, "temporary", times(40_000, 400))
    assert row["leaked_bytes"] == 0


def test_errors_are_those_of_the_interval(python, known):
    """Of blocks that are small against it, the square of the standard error is interval times bytes."""
    row = lines_of(report(known(python)))[MARKS["freed"]]
    expected = 2 * (INTERVAL * row["allocated_bytes"]) ** 0.5
    assert 0.95 < row["allocated_error_bytes"] / expected < 1.05


def test_the_sums_and_the_header(python, known):
    found = report(known(python))
    memory = found["memory"]
    peak = sum(allocated for allocated, at_peak, _ in TRUTH.values() if at_peak)
    assert memory["sample_bytes"] == INTERVAL
    is_about(memory, "peak", peak, 12_000_000)  # and the interpreter
    done = fathom("report", "--memory", known(python))
    assert "blocks were sampled every 16.0 KiB: these are estimates" in done.stdout
    assert re.search(r"^peak about \S+ MiB ± \S+ MiB in ", done.stdout, re.M)
    assert re.search(r"^ *self +± +% +blocks +total +± ", done.stdout, re.M)


def test_every_report_shows_the_error(python, known):
    for words in (["=tree"], ["=lines"], ["=leaks"], ["=threads"], ["=processes"],
                  ["", "--callers"], ["", "--callees"], ["=functions"]):
        done = fathom("report", f"--memory{words[0]}", *words[1:], known(python))
        assert done.returncode == 0 and "  ±" in done.stdout, (words, done.stdout, done.stderr)
    done = fathom("report", "--memory", "--csv", known(python))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert rows and all(int(row["total_peak_error_bytes"]) >= 0 for row in rows)
    done = fathom("report", "--memory=processes", "--csv", known(python))
    assert [row["recorded"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["sampled"]


def test_a_child_of_fork(python, tmp_path):
    """What it was born with is an estimate, too, and is given back by what it frees."""
    out = record(tmp_path, python, "fork")
    found = report(out, "--memory=processes")
    assert [process["sample_bytes"] for process in found["processes"]] == [INTERVAL] * 2
    parent, child = (process["process"] for process in found["processes"])
    born = sum(TRUTH[mark][0] for mark in ("small", "middling", "large", "thread", "mmap"))
    of_child = report(out, "--process", child)
    row = lines_of(of_child)[MARKS["child"]]
    is_about(row, "leaked", times(8_000, 700), 200_000)
    of_child = report(out, "--process", child, at="peak")
    inherited = next(f for f in of_child["functions"] if f["name"] == "<inherited by fork>")
    stays = TRUTH["malloc"][0]
    is_about(inherited, "peak", born + stays, 12_000_000)
    is_about(inherited, "leaked", stays, 12_000_000)
    assert inherited["allocated_bytes"] == 0
    row = lines_of(report(out, "--process", parent))[MARKS["small"]]
    is_about(row, "leaked", TRUTH["small"][0], LISTS["small"] * 2)


def test_a_seed_makes_it_the_same_again(python, tmp_path):
    code = "x = [bytes(300) for _ in range(30000)]\nimport os; os._exit(0)"
    found = []
    for number, seed in enumerate((5, 5, 6)):
        out = tmp_path / f"{number}.fathom"
        done = run("--memory=sampled:64K", "--seed", seed, "-c", code, python=python, output=out,
                   collectors=("--sample",), env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0"})
        assert done.returncode == 0, done.stderr
        found.append(report(out)["memory"]["peak_bytes"])
    assert found[0] == pytest.approx(found[1], rel=0.02)  # addresses decide about free lists
    assert found[0] != found[2]


@pytest.mark.parametrize("words, sentence", [
    (["--memory=sampled:"], '"" is no size'),
    (["--memory=sampled:x"], '"x" is no size'),
    (["--memory=sampled:1"], "every 1 is not from 1K to 64M"),
    (["--memory=sampled:1G"], "every 1G is not from 1K to 64M"),
    (["--memory=sampledx"], "--memory= is all, malloc, events or sampled[:SIZE], not sampledx"),
    (["--memory=sampled", "--types"], "--types needs every block"),
    (["--memory=sampled", "--fail-above", "1M"], "--fail-above needs exact numbers"),
    (["--memory=sampled", "--limit", "1G"], "--limit needs exact numbers"),
    (["--memory=sampled", "--seed", "0"], "--seed needs a whole number from 1 on"),
    (["--memory=sampled", "--seed", "1x"], "--seed needs a whole number from 1 on"),
    (["--memory", "--seed", "1"], "--seed goes with --memory=sampled"),
])
def test_what_cannot_be_is_said(words, sentence):
    done = fathom("run", *words, "-c", "pass")
    assert done.returncode == 2 and sentence in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_lines_have_no_memory_of_samples(python, tmp_path):
    """Their meters need every block."""
    out = tmp_path / "lines.fathom"
    done = run("--memory=sampled", "--lines", KNOWN, python=python, output=out, collectors=())
    assert done.returncode == 0, done.stderr
    shown = fathom("report", "--lines=small", out)
    assert shown.returncode == 0 and "Increment" not in shown.stdout and "small" in shown.stdout


def test_exact_and_sampled_runs_become_one(python, known, tmp_path):
    exact, both = tmp_path / "exact.fathom", tmp_path / "both.fathom"
    assert run("--memory", KNOWN, python=python, output=exact,
               collectors=("--sample",)).returncode == 0
    assert fathom("merge", "-o", both, exact, known(python)).returncode == 0
    rows = lines_of(report(both))
    assert 0 <= rows[MARKS["large"]]["leaked_bytes"] - 2 * times(3, 3_000_000) < 200  # lists
    is_about(rows[MARKS["middling"]], "leaked", 2 * TRUTH["middling"][0], 20_000)
    shown = fathom("report", "--memory", both).stdout
    assert "of some processes blocks were sampled every 16.0 KiB" in shown
