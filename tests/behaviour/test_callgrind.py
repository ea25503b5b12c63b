"""callgrind files: callgrind_annotate shows the numbers that Fathom shows, and the other way round."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from launch import own_run_folders, run  # noqa: F401  (the fixture)
from pstats_tools import fails, fathom, table, write as write_pstats

ANNOTATE = shutil.which("callgrind_annotate")
VALGRIND = shutil.which("valgrind")

PROGRAM = """
import threading
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
class A:
    def m(self): return sorted(fib(i) for i in range(8))
    def twin(self): return [(lambda: 1)(), (lambda: 2)()]
def main():
    for i in range(3): A().m(); A().twin()
    even(9)
thread = threading.Thread(target=main); thread.start(); thread.join()
main()
"""


def annotate(path, inclusive=False) -> dict[str, int]:
    """{"file:function": cost}, by callgrind_annotate; objects' names taken off."""
    if not ANNOTATE:
        pytest.skip("callgrind_annotate is not installed (Debian: valgrind)")
    done = subprocess.run([ANNOTATE, "--threshold=100", "--auto=no", "--show=ns", "--sort=ns",
                           f"--inclusive={'yes' if inclusive else 'no'}", str(path)],
                          capture_output=True, text=True, cwd="/")
    assert done.returncode == 0 and not done.stderr, done.stderr
    costs = {}
    for line in done.stdout.split("file:function", 1)[1].splitlines():
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(.*)$", line)
        if found:
            costs[found[2]] = int(found[1].replace(",", ""))
    return costs


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("callgrind")
    (folder / "program.py").write_text(PROGRAM)
    done = run(folder / "program.py", output=folder / "x.fathom")
    assert done.returncode == 0, done.stderr
    return folder / "x.fathom"


@pytest.fixture(scope="module")
def exported(recording):
    out = recording.parent / "callgrind.out.1"
    done = fathom("convert", recording, "-o", out, "--force")
    assert done.returncode == 0, done.stderr
    assert out.read_text().startswith("# callgrind format\n")
    return out


def label(row) -> str:
    return f"{row['file'] or '~'}:{row['qualname']}"


def ours(path) -> list[dict]:
    return table(path, "-n", "all")["functions"]


def sometimes_outermost(row) -> bool:
    """The interpreter calls its import system both from Python and by itself before the program. Such
    outermost calls have no place in the format: what is called and outermost has too little there."""
    return row["file"].startswith("<frozen")


def test_self_times_as_callgrind_annotate_shows_them(recording, exported):
    shown = annotate(exported)
    expected: dict[str, int] = {}
    for row in ours(recording):
        expected[label(row)] = expected.get(label(row), 0) + row["self_ns"]
    combined: dict[str, int] = {}
    for name, cost in shown.items():
        name = re.sub(r"( \[\d+\])?('2)?$", "", name)
        combined[name] = combined.get(name, 0) + cost
    assert {k: v for k, v in combined.items() if v} == {k: v for k, v in expected.items() if v}


def test_total_times_as_callgrind_annotate_shows_them(recording, exported):
    shown = annotate(exported, inclusive=True)
    names = [label(row) for row in ours(recording)]
    for row in ours(recording):
        if names.count(label(row)) == 1 and not sometimes_outermost(row):
            assert shown[label(row)] == row["total_ns"], row


def test_recursion_and_twins_are_told_apart(exported):
    text = exported.read_text()
    for name in ("fib", "fib'2", "even", "even'2", "odd'2", "A.twin.<locals>.<lambda>",
                 "A.twin.<locals>.<lambda> [2]"):
        assert re.search(rf"^c?fn=\(\d+\) {re.escape(name)}$", text, re.M), name


def test_read_back(recording, exported):
    before, after = ({label(row): row for row in ours(path)
                      if "<lambda>" not in row["name"] and not sometimes_outermost(row)}
                     for path in (recording, exported))
    assert before.keys() == after.keys()
    for name, row in before.items():
        for key in ("self_ns", "total_ns", "line"):
            assert after[name][key] == row[key], (name, key)
        if after[name]["calls"]:  # the outermost calls of a thread are not in such a file
            assert after[name]["calls"] == row["calls"], name


def test_from_pstats(tmp_path):
    """Without a tree: one level, callers as they are."""
    key = ("a.py", 1, "f")
    write_pstats(tmp_path / "x.prof", {
        key: (1, 5, 0.25, 0.5, {key: (4, 1, 0.125, 0.25)}),
        ("~", 0, "<built-in x>"): (2, 2, 0.25, 0.25, {key: (2, 2, 0.25, 0.25)})})
    assert fathom("convert", tmp_path / "x.prof", "-o", tmp_path / "x.callgrind").returncode == 0
    text = (tmp_path / "x.callgrind").read_text()
    assert "fn=(1) f\n1 250000000\n" in text
    assert "cfn=(1)\ncalls=4 1\n1 250000000\n" in text
    assert "cfi=(2) ~\ncfn=(2) <built-in x>\ncalls=2 0\n1 250000000\n" in text
    rows = {row["name"]: row for row in ours(tmp_path / "x.callgrind")}
    assert rows["f"]["self_ns"] == 250_000_000 and rows["f"]["total_ns"] == 500_000_000
    assert rows["<built-in x>"]["calls"] == 2


C_PROGRAM = """
#include <stdio.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int twice(int x) { return fib(x) + fib(x); }
int main(void) { printf("%d\\n", twice(5)); return 0; }
"""


@pytest.mark.parametrize("options", [[], ["--dump-instr=yes"],
                                     ["--compress-strings=no", "--compress-pos=no"],
                                     ["--separate-recs=1"], ["--cache-sim=yes"]])
def test_valgrinds_own(options, tmp_path):
    if not VALGRIND or not shutil.which("cc"):
        pytest.skip("valgrind or a C compiler is not installed")
    (tmp_path / "t.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-g", "-O0", "t.c", "-o", "t"], cwd=tmp_path, check=True)
    subprocess.run([VALGRIND, "--tool=callgrind", "--callgrind-out-file=out", *options, "./t"],
                   cwd=tmp_path, check=True, capture_output=True)
    text = (tmp_path / "out").read_text()
    rows = {row["name"]: row for row in ours(tmp_path / "out")}
    # fib(5) is 15 calls; each of the two begins 14 more.
    assert rows["fib"]["calls"] == 30 and rows["twice"]["calls"] == 1
    assert rows["twice"]["line"] == 4 and rows["twice"]["file"].endswith("t.c")
    assert rows["twice"]["total_ns"] == rows["twice"]["self_ns"] + rows["fib"]["total_ns"]
    assert rows["fib"]["total_ns"] == rows["fib"]["self_ns"]  # it calls only itself
    total = int(re.search(r"^totals: (\d+)", text, re.M)[1])
    assert sum(row["self_ns"] for row in ours(tmp_path / "out")) == total


def test_damaged(tmp_path):
    path = tmp_path / "x"
    path.write_text("# callgrind format\nevents: ns\nfn=f\n1 two\n")
    assert f"reading {path}: line 4: a cost is none" in fails(5, "report", path)
    path.write_text("# callgrind format\nversion: 7\nevents: ns\n")
    assert "version that is not 1" in fails(6, "report", path)
    path.write_text("# callgrind format\nevents: ns\nsummary: 12\nfn=f\n1 10\n")
    done = fathom("report", path)
    assert done.returncode == 0 and b"its end is missing" in done.stdout


def test_names_of_outputs(recording, tmp_path):
    for name in ("callgrind.out.7", "x.callgrind"):
        assert fathom("convert", recording, "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes().startswith(b"# callgrind format\n")
