"""fathom diff: files written here by hand, so that every number is known; recordings of real programs; and the sums of memray's files."""

from __future__ import annotations

import csv
import io
import json
import marshal
from pathlib import Path

import pytest

from launch import own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fathom

MEMRAY = Path(__file__).parent.parent / "golden" / "memray"
HEAD = "allocator,num_allocations,size,tid,thread_name,stack_trace\n"


def diff(*args, status=0) -> str:
    done = fathom("diff", *args)
    assert done.returncode == status, done
    return done.stdout.decode()


def compared(*args) -> dict:
    return json.loads(diff("--json", "-n", "all", *args))


def pstats(path: Path, functions: dict) -> Path:
    """name: (line, calls, self, total)"""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(marshal.dumps({
        (str(path.with_name("app.py")), line, name): (calls, calls, own, total, {})
        for name, (line, calls, own, total) in functions.items()}))
    return path


@pytest.fixture
def runs(tmp_path):
    """Another folder, other lines; price is slower, load faster, one new, one gone, one as it was."""
    return (pstats(tmp_path / "a" / "x.pstats", {"price": (10, 5, 1.0, 2.0), "load": (20, 1, 3.0, 3.0), "old": (30, 2, 0.5, 0.5),
                                                 "same": (40, 7, 0.25, 0.25)}),
            pstats(tmp_path / "b" / "x.pstats", {"price": (15, 8, 1.5, 2.5), "load": (22, 1, 1.0, 1.0), "fresh": (31, 3, 0.125, 0.125),
                                                 "same": (41, 7, 0.25, 0.25)}))


def test_functions(runs):
    result = compared(*runs)
    rows = [(f["qualname"], f["before_calls"], f["now_calls"], f["change_self_ns"] / 1e9, f["change_total_ns"] / 1e9)
            for f in result["functions"]]
    assert rows == [("load", 1, 1, -2.0, -2.0), ("price", 5, 8, 0.5, 0.5), ("old", 2, 0, -0.5, -0.5), ("fresh", 0, 3, 0.125, 0.125),
                    ("same", 7, 7, 0, 0)]  # of equal changes, more now comes first
    price = next(f for f in result["functions"] if f["qualname"] == "price")
    assert (price["line"], price["before_line"], price["file"]) == (15, 10, str(runs[1].with_name("app.py")))
    assert (result["of"], result["sorted_by"], result["scale"]) == ("time", "self", 1.0)
    assert (result["before_self_ns"], result["now_self_ns"], result["change_self_ns"]) == (4_750_000_000, 2_875_000_000, -1_875_000_000)
    assert (result["before_calls"], result["now_calls"]) == (15, 19)


def test_the_page(runs):
    lines = diff(*runs, "--strip-dirs").splitlines()
    assert lines[0] == f"before  {runs[0]}" and lines[1] == f"now     {runs[1]}"
    assert lines[2] == "time 4.750 s → 2.875 s, -1.875 s (0.61×)"
    assert lines[3] == "1 grew · 1 shrank · 1 is new · 1 is no more"
    assert lines[5].split() == ["before", "now", "change", "total", "calls", "function"]
    assert lines[6].split() == ["3.000", "s", "1.000", "s", "-2.000", "s", "0.33×", "-2.000", "s", "load", "app.py:22"]
    found = {line.split()[-2]: line.split() for line in lines[6:] if "app.py" in line}
    assert found["price"] == ["1.000", "s", "1.500", "s", "+500", "ms", "1.50×", "+500", "ms", "+3", "price", "app.py:15"]
    assert found["fresh"] == ["125", "ms", "+125", "ms", "new", "+125", "ms", "+3", "fresh", "app.py:31"]
    assert found["old"] == ["500", "ms", "-500", "ms", "gone", "-500", "ms", "-2", "old", "app.py:30"]
    assert "same" not in found, "what did not change is left out"
    assert lines[-1] == "4 of 5 functions"


def test_colours(runs):
    text = diff(*runs, "--color", "always")
    assert "\033[31m+500 ms\033[0m" in text and "\033[32m-2.000 s\033[0m" in text
    assert "\033" not in diff(*runs)


@pytest.mark.parametrize("keys, first", [
    ("growth", "price"), ("ratio", "fresh"), ("before", "load"), ("now", "price"), ("name", "fresh"), ("calls", "fresh"),
    ("calls,before", "same"), ("total", "load"),
])
def test_order(runs, keys, first):
    found = compared("--sort", keys, *runs)["functions"]
    if keys == "calls":
        assert {found[0]["qualname"], found[1]["qualname"]} == {"price", "fresh"}  # three more each
    else:
        assert found[0]["qualname"] == first


def test_limit_and_csv(runs):
    rows = list(csv.DictReader(io.StringIO(diff("--csv", "-n", "1", *runs))))
    assert [(row["function"], row["before_self_ns"], row["now_self_ns"], row["change_self_ns"], row["change_calls"]) for row in rows] == \
        [("load", "3000000000", "1000000000", "-2000000000", "0")]


def test_the_same_is_nothing(runs):
    text = diff(runs[0], runs[0])
    assert "time 4.750 s → 4.750 s, the same" in text and "nothing changed" in text


def test_normalized(runs):
    """Before took 4.75 s, now 2.875: everything before is multiplied by 0.605, so that shares are compared."""
    result = compared("--normalize", *runs)
    assert result["scale"] == 2.875 / 4.75 and result["change_self_ns"] == 0
    same = next(f for f in result["functions"] if f["qualname"] == "same")
    assert same["before_self_ns"] == round(0.25e9 * 2.875 / 4.75)
    assert "multiplied by 0.6053" in diff("--normalize", *runs)


def test_gate(runs):
    assert fathom("diff", "--fail-above", "5%", *runs).returncode == 0  # it became less
    done = fathom("diff", "--fail-above", "5", runs[1], runs[0])
    assert done.returncode == 17  # 4.75 / 2.875 = 1.652
    assert done.stderr.decode() == "fathom diff: time grew by 65.2 %, more than the 5 % that it may\n"
    assert b"load" in done.stdout
    assert fathom("diff", "--fail-above", "66%", runs[1], runs[0]).returncode == 0
    done = fathom("diff", "--fail-above", "20%", "--sort", "calls", *runs)
    assert done.returncode == 17 and b"calls grew by 26.7 %" in done.stderr  # 19 of 15


def test_memory_by_line(tmp_path):
    """Without source, lines are known by how far they are from the first of their function."""
    (tmp_path / "a.csv").write_text(HEAD + "MALLOC,2,1000,1,0x1,rows;/srv/app.py;3|main;/srv/app.py;9\n"
                                    "MALLOC,1,50,1,0x1,rows;/srv/app.py;5|main;/srv/app.py;9\n")
    (tmp_path / "b.csv").write_text(HEAD + "MALLOC,2,4000,1,0x1,rows;/srv/app.py;13|main;/srv/app.py;19\n"
                                    "MALLOC,1,50,1,0x1,rows;/srv/app.py;15|main;/srv/app.py;19\n"
                                    "MALLOC,3,600,1,0x1,more;/srv/app.py;30|main;/srv/app.py;20\n")
    result = compared(tmp_path / "a.csv", tmp_path / "b.csv")
    rows = {(f["qualname"], f["line"]): (f["before_peak_bytes"], f["now_peak_bytes"], f["change_peak_blocks"], f["change_total_peak_bytes"])
            for f in result["lines"]}
    assert result["of"] == "memory"
    assert rows == {("rows", 13): (1000, 4000, 0, 3000), ("rows", 15): (50, 50, 0, 0), ("more", 30): (0, 600, 3, 600),
                    ("main", 19): (0, 0, 0, 3000), ("main", 20): (0, 0, 0, 600)}
    functions = compared("--memory=functions", tmp_path / "a.csv", tmp_path / "b.csv")["functions"]
    assert {(f["qualname"], f["before_peak_bytes"], f["now_peak_bytes"]) for f in functions} == \
        {("rows", 1050, 4050), ("more", 0, 600), ("main", 0, 0)}
    tree = compared("--memory=tree", "--min", "0", tmp_path / "a.csv", tmp_path / "b.csv")["tree"]
    assert [(step["depth"], step.get("qualname"), step["before_total_peak_bytes"], step["now_total_peak_bytes"], step["change_peak_bytes"])
            for step in tree] == [(0, None, 1050, 4650, 0), (1, "main", 1050, 4050, 0), (2, "rows", 1000, 4000, 3000),
                                  (1, "main", 0, 600, 0), (2, "more", 0, 600, 600)]


def test_a_relative_file(tmp_path):
    """memray has a script's name as it was typed; it is the one file of the other that ends so."""
    for name, folder, size in (("a", "", 1000), ("b", "/srv/", 1500)):
        (tmp_path / f"{name}.csv").write_text(HEAD + f"MALLOC,2,{size},1,0x1,rows;{folder}app.py;3|main;{folder}app.py;9\n")
    rows = [(f["qualname"], f["before_peak_bytes"], f["now_peak_bytes"]) for f in compared(tmp_path / "a.csv", tmp_path / "b.csv")["lines"]]
    assert sorted(rows) == [("main", 0, 0), ("rows", 1000, 1500)]


def test_tree_of_time(tmp_path):
    (tmp_path / "a").write_text("main (app.py:1);load (app.py:9) 10\nmain (app.py:1);price (app.py:5) 30\n")
    (tmp_path / "b").write_text("main (app.py:1);load (app.py:9) 10\nmain (app.py:1);price (app.py:5) 70\n"
                                "main (app.py:1);price (app.py:5);load (app.py:9) 20\n")
    tree = compared("--tree", "--min", "0", tmp_path / "a", tmp_path / "b")["tree"]
    before = {tuple(s.get("qualname") for s in tree[:i + 1] if s["depth"] <= step["depth"])[-1:] + (step["depth"],):
              (step["before_total_ns"], step["now_total_ns"]) for i, step in enumerate(tree)}
    unit = before[("main", 1)][0] // 40
    assert {key: (a // unit, b // unit) for key, (a, b) in before.items()} == \
        {(None, 0): (40, 100), ("main", 1): (40, 100), ("price", 2): (30, 90), ("load", 3): (0, 20)}
    text = diff("--tree", tmp_path / "a", tmp_path / "b")
    assert "└ load" in text and "1 more" in text


def test_memrays_files():
    """Recorded by two Pythons: sums are those that memray says, functions find each other."""
    old, new = (json.loads((MEMRAY / f"{name}.json").read_text()) for name in ("v11", "v13-3.15"))
    result = compared(MEMRAY / "v11.bin", MEMRAY / "v13-3.15.bin")
    for metric in ("peak", "leaked", "allocated", "temporary"):
        assert (result[f"before_{metric}_bytes"], result[f"now_{metric}_bytes"]) == (old[metric]["bytes"], new[metric]["bytes"])
    worker = next(f for f in result["lines"] if f["qualname"] == "worker" and f["before_peak_bytes"] > 1 << 20)
    assert worker["now_peak_bytes"] > 1 << 20


def test_lines_that_moved(python, tmp_path):
    """In real recordings lines are known by their text."""
    program = "def load(n):\n    a = bytearray({size})\n    b = bytearray(50_000)\n    return a, b\n\n\nkept = load(1)\n"
    for name, text in (("a", program.format(size=100_000)), ("b", "import sys\n\n" + program.format(size=300_000))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.py").write_text(text)
        done = fathom("run", "-q", "--memory", "-o", tmp_path / f"{name}.fathom", python, "app.py", cwd=tmp_path / name)
        assert done.returncode == 0, done.stderr
    lines = compared("--memory", tmp_path / "a.fathom", tmp_path / "b.fathom")["lines"]
    found = {(f["qualname"], f["line"]): (f["before_peak_bytes"], f["now_peak_bytes"]) for f in lines if f["file"].endswith("app.py")}
    bytes_ = found[("load", 4)]
    assert bytes_[1] - bytes_[0] == 200_000 and 100_000 < bytes_[0] < 100_100
    assert found[("load", 5)][0] == found[("load", 5)][1]
    tree = compared("--memory=tree", tmp_path / "a.fathom", tmp_path / "b.fathom")["tree"]
    assert [(s["qualname"], s["line"]) for s in tree if s.get("file", "").endswith("app.py")][:2] == [("<module>", 9), ("load", 4)]


ALIKE = """
import dataclasses


def make(lines):
    space = {}
    exec("def __create_fn__():\\n" + "  pass\\n" * lines + "  def inner(): return bytearray(5000 + %d)\\n  return inner" % lines, space)
    return space["__create_fn__"]()


def one():
    def same():
        return bytearray(70_000)
    return same()


def two():
    def same():
        return bytearray(80_000)
    return same()


@dataclasses.dataclass
class A:
    x: int = 0
    y: int = 1


@dataclasses.dataclass
class B:
    x: int = 0
    z: int = 1


kept = [make(n)() for n in range(6)] + [one(), two()]
kept += [f() for f in (lambda: bytearray(10_000), lambda: bytearray(20_000), lambda: bytearray(30_000))]
"""


def test_a_recording_and_itself(python, tmp_path):
    """Nothing is new, gone or changed, whatever has the name of something else: functions that exec made, of files that are all
    called "<string>", lambdas of one line, functions inside others."""
    (tmp_path / "app.py").write_text(ALIKE)
    for name, options in (("memory", ["--memory"]), ("time", ["--calls", "--lines=all"])):
        done = fathom("run", "-q", *options, "-o", tmp_path / f"{name}.fathom", python, "app.py", cwd=tmp_path)
        assert done.returncode == 0, done
    for name, options in (("memory", ["--memory"]), ("memory", ["--memory=functions"]), ("memory", ["--memory=tree", "--min", "0"]),
                          ("memory", ["--at", "all"]), ("time", []), ("time", ["--lines"]), ("time", ["--tree", "--min", "0"])):
        file = tmp_path / f"{name}.fathom"
        head = diff(*options, file, file)
        is_tree = "--min" in options
        assert head.rstrip().endswith("all threads" if is_tree else "nothing changed"), (options, head)
        for word in ("new", "no more", "grew", "shrank"):
            assert f" {word}" not in head.replace(str(tmp_path), ""), (options, head)
        result = compared(*options, file, file)
        rows = next(result[part] for part in ("lines", "functions", "tree") if part in result)
        assert rows
        if isinstance(rows, list):
            changed = [row for row in rows for key, number in row.items() if key.startswith("change_") and number]
            assert not changed, (options, changed)


def test_two_times_of_one_run(python, tmp_path):
    """A million bytes for the first second, two for the second."""
    (tmp_path / "app.py").write_text("import time\na = bytearray(1_000_000)\ntime.sleep(1)\nb = bytearray(2_000_000)\ndel a\ntime.sleep(1)\n")
    recording = tmp_path / "out.fathom"
    done = fathom("run", "-q", "--memory", "-o", recording, python, "app.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = compared("--at", "35%", "--at", "85%", recording)
    assert (result["before"], result["now"], result["sorted_by"]) == (str(recording), str(recording), "then")
    assert result["before_at_ns"] < result["now_at_ns"]
    found = {f["line"]: f["change_then_bytes"] for f in result["lines"] if f["file"] == str(tmp_path / "app.py")}
    assert 2_000_000 < found[4] < 2_001_000 and -1_001_000 < found[2] < -999_000  # the module's dict may grow on either
    text = diff("--at", "35%", "--at", "85%", recording)
    assert f"before  {recording} at " in text and "s, as looked at " in text
    assert "nothing changed" in diff("--at", "35%", recording, recording)
    assert fathom("diff", "--at", "35%", recording).returncode == 2
    assert fathom("diff", "--at", "1h", "--at", "2h", recording).returncode == 12


@pytest.mark.parametrize("args, status, words", [
    ((), 2, "name two recordings"),
    (("a",), 2, "name two recordings"),
    (("a", "b", "c"), 2, "name two recordings"),
    (("--sort", "bogus", "a", "b"), 10, 'no sort key "bogus"'),
    (("--memory=bogus", "a", "b"), 2, "--memory= is lines, functions or tree"),
    (("--at", "noon", "a", "b"), 2, "--at is peak"),
    (("--fail-above", "much", "a", "b"), 2, "takes a percentage"),
    (("--lines", "--tree", "a", "b"), 2, "--lines is of time"),
    (("/nowhere", "/nowhere"), 3, "does not exist"),
])
def test_refused(args, status, words):
    done = fathom("diff", *args)
    assert done.returncode == status and words in done.stderr.decode(), done
    assert done.stderr.count(b"\n") == 1


def test_lines_alone(tmp_path):
    """line_profiler's files have functions by their lines alone."""
    for name, hits, ticks in (("a", 5, 1000), ("b", 7, 4000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.collapsed").write_text(f"main (/srv/app.py:3) {ticks}\n")
        done = fathom("convert", tmp_path / name / "x.collapsed", "-o", tmp_path / f"{name}.fathom")
        assert done.returncode == 0, done
    lines = compared("--lines", tmp_path / "a.fathom", tmp_path / "b.fathom")["lines"]
    assert [(f["qualname"], f["at_line"], f["before_total_ns"], f["now_total_ns"]) for f in lines] == [("main", 3, 1000, 4000)]


def test_lprof(tmp_path):
    for name in ("a", "b"):
        done = fathom("run", "-q", "--lines=all", "-o", tmp_path / f"{name}.fathom", "python3", "-c", "def f():\n    return 1\nf()")
        assert done.returncode == 0, done
        assert fathom("convert", tmp_path / f"{name}.fathom", "-o", tmp_path / f"{name}.lprof").returncode == 0
    lines = compared(tmp_path / "a.lprof", tmp_path / "b.lprof")["lines"]
    assert any(f["qualname"] == "f" and (f["before_calls"], f["now_calls"]) == (1, 1) for f in lines)
    done = fathom("diff", "--tree", tmp_path / "a.lprof", tmp_path / "b.lprof")
    assert done.returncode == 12 and b"holds no time of functions" in done.stderr


def test_what_one_does_not_hold(runs, tmp_path):
    for args, words in (((runs[0], MEMRAY / "v11.bin"), "holds no time of functions"), (("--memory", *runs), "holds no memory"),
                        (("--tree", *runs), "no calling contexts"), (("--lines", *runs), "holds no lines")):
        done = fathom("diff", *args)
        assert done.returncode == 12 and words in done.stderr.decode(), done
