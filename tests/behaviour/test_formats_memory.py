"""Foreign formats of memory: what Fathom writes, what the tools of these formats make of it, and what Fathom reads of others.

The recording is the one that tests/unit/tool_heap.c draws; the files of memray are those of memray 1.20 for
tests/golden/memray/prog.py, and the numbers those that `memray stats` prints."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from launch import FATHOM, own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fathom

TOOL = Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_heap"
MEMRAY = Path(__file__).parent.parent / "golden" / "memray"
GO = shutil.which("go") or shutil.which("pprof")
PPROF = ["go", "tool", "pprof"] if shutil.which("go") else ["pprof"]
MIB = 1 << 20

PARENT, CHILD = 'process 100:"python3 load.py"', 'process 200:"python3 load.py"'
MAIN = "thread (100): MainThread"
MODULE, FIRST, SECOND = ("<module> (/srv/load.py:16)", "main (/srv/load.py:13)",
                         "main (/srv/load.py:14)")
TWO, FIVE = "rows (/srv/load.py:2)", "rows (/srv/load.py:5)"
NINE, TEN = "parse (/srv/load.py:9)", "parse (/srv/load.py:10)"

# stack: peak, leaked, allocated in MiB, and blocks
STACKS = {
    (PARENT, MAIN, "<before the program>"): (2, 1, 3, 1000),
    (PARENT, MAIN, MODULE, FIRST, TWO): (4, 0, 4, 1),
    (PARENT, MAIN, MODULE, FIRST, FIVE, NINE): (1, 0.5, 8, 800),
    (PARENT, MAIN, MODULE, FIRST, FIVE, TEN): (3, 1, 6, 60),
    (PARENT, MAIN, MODULE, FIRST, FIVE, TEN, TEN): (1, 0, 1, 10),
    (PARENT, MAIN, MODULE, SECOND, TWO): (8, 8, 8, 1),
    (PARENT, MAIN, MODULE, SECOND, FIVE, NINE): (0, 0, 2, 200),
    (PARENT, "thread (101): worker", "<no Python frame>"): (1, 1, 1, 3),
    (CHILD, "thread (200): MainThread", "<inherited by fork>"): (5, 5, 0, 0),
    (CHILD, "thread (200): MainThread", MODULE, FIRST, TWO): (2, 0, 2, 1),
}


def expected(metric: str) -> dict[tuple, int]:
    which = ["peak", "leaked", "allocated", "blocks"].index(metric)
    scale = 1 if metric == "blocks" else MIB
    return {stack: int(n[which] * scale) for stack, n in STACKS.items() if n[which]}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "load.fathom"
    subprocess.run([TOOL, path], check=True, timeout=300)
    return path


@pytest.fixture
def converted(recording, tmp_path):
    def convert(name, metric, *source):
        done = fathom("convert", *(source or [recording]), "-f", "--metric", metric, "-o", tmp_path / name)
        assert (done.returncode, done.stderr) == (0, b""), done
        return tmp_path / name
    return convert


def stacks(path: Path) -> dict[tuple, int]:
    found: dict[tuple, int] = {}
    for line in path.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        key = tuple(stack.split(";"))
        assert key not in found, "each stack stands there once"
        found[key] = int(number)
    return found


@pytest.mark.parametrize("metric", ["peak", "leaked", "allocated", "blocks"])
def test_collapsed(converted, metric):
    assert stacks(converted("a.collapsed", metric)) == expected(metric)


def test_without_a_metric_memory_alone_is_the_peak(recording, tmp_path):
    fathom("convert", recording, "-o", tmp_path / "a.collapsed")
    assert stacks(tmp_path / "a.collapsed") == expected("peak")
    fathom("convert", recording, "-o", tmp_path / "a.pb.gz")
    fathom("convert", tmp_path / "a.pb.gz", "--metric", "allocated", "-o", tmp_path / "b.collapsed")
    assert stacks(tmp_path / "b.collapsed") == expected("allocated")


def test_time_stays_time_where_there_is_some(tmp_path):
    subprocess.run([TOOL, tmp_path / "a.fathom", "7"], check=True, timeout=300)
    fathom("convert", tmp_path / "a.fathom", "-o", tmp_path / "a.collapsed")
    assert stacks(tmp_path / "a.collapsed") == {("<module> (/srv/load.py:1)", "main (/srv/load.py:12)"): 7}


@pytest.mark.parametrize("metric", ["peak", "leaked", "allocated", "blocks"])
@pytest.mark.parametrize("name", ["a.speedscope.json", "a.pb.gz"])
def test_read_back(converted, name, metric):
    again = stacks(converted("b.collapsed", metric, converted(name, metric)))
    if name.endswith("json"):  # it has no commands
        again = {(stack[0].replace('""', '"python3 load.py"'), *stack[1:]): n for stack, n in again.items()}
    assert again == expected(metric)


def test_collapsed_read_back(converted, tmp_path):
    text = converted("a.collapsed", "peak").read_text()
    (tmp_path / "b.collapsed").write_text("# metric: peak\n" + text)
    assert stacks(converted("c.collapsed", "peak", tmp_path / "b.collapsed")) == expected("peak")


@pytest.mark.parametrize("metric", ["peak", "leaked", "allocated"])
def test_csv(converted, metric):
    with open(converted("a.csv", metric), newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        frames = [frame.rsplit(";", 2) for frame in row["stack_trace"].split("|") if frame]
        stack = tuple(f"{name} ({file}:{line})" if file else name for name, file, line in frames[::-1])
        found[row["tid"], stack or ("<no Python frame>",)] = int(row["size"])
    assert found == {(stack[1].split("(")[1].split(")")[0], stack[2:]): n for stack, n in expected(metric).items()}
    assert {row["thread_name"] for row in rows} >= {"0x64 (MainThread)", "0x65 (worker)"}
    # What Fathom writes is read as memray's is, at the peak.
    again = stacks(converted("b.collapsed", "peak", converted("a.csv", metric)))
    assert sum(again.values()) == sum(expected(metric).values())


def test_speedscope_has_bytes(converted):
    made = json.loads(converted("a.speedscope.json", "peak").read_text())
    assert {p["unit"] for p in made["profiles"]} == {"bytes"}
    assert sum(p["endValue"] for p in made["profiles"]) == 27 * MIB
    frames = {(f["name"], f.get("line")) for f in made["shared"]["frames"]}
    assert ("rows", 2) in frames and ("rows", 5) in frames
    made = json.loads(converted("b.speedscope.json", "blocks").read_text())
    assert {p["unit"] for p in made["profiles"]} == {"none"}


def test_callgrind_has_bytes_on_lines(converted):
    text = converted("a.callgrind", "peak").read_text()
    assert "events: bytes\n" in text
    costs: dict[tuple[str, int], int] = {}
    calls: dict[tuple[str, int, str], float] = {}
    names: dict[str, str] = {}
    function, callee, skip = "", "", False
    for line in text.splitlines():
        key, _, rest = line.partition("=")
        if key in ("fn", "cfn"):
            number, _, name = rest.partition(" ")
            names.setdefault(number, name)
            function = names[number] if key == "fn" else function
            callee = names[number]
        elif key == "calls":
            skip = True
        elif line[:1].isdigit():
            at, cost = line.split()
            if skip:
                calls[function, int(at), callee] = int(cost) / MIB
            else:
                costs[function, int(at)] = costs.get((function, int(at)), 0) + int(cost)
            skip = False
    assert {k: v / MIB for k, v in costs.items() if v} == {
        ("rows", 2): 14, ("parse", 9): 1, ("parse", 10): 3, ("parse'2", 10): 1,
        ("<before the program>", 0): 2, ("<inherited by fork>", 0): 5}
    assert calls == {("<module>", 16, "main"): 19, ("main", 13, "rows"): 11, ("main", 14, "rows"): 8,
                     ("rows", 5, "parse"): 5, ("parse", 10, "parse'2"): 1}


@pytest.mark.skipif(not shutil.which("callgrind_annotate"), reason="callgrind_annotate is not installed")
def test_callgrind_annotate_reads_it(converted):
    path = converted("callgrind.out.1", "peak")
    done = subprocess.run(["callgrind_annotate", "--inclusive=yes", path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert f"{19 * MIB:,}" in done.stdout and "main" in done.stdout


@pytest.mark.skipif(not GO, reason="neither go nor pprof is installed")
@pytest.mark.parametrize("metric, option, total, lines", [
    ("peak", "-inuse_space", 27, {"rows /srv/load.py:2": 14, "parse /srv/load.py:10": 4}),
    ("leaked", "-inuse_space", 16.5, {"rows /srv/load.py:2": 8, "<inherited by fork>": 5}),
    ("peak", "-alloc_space", 35, {"rows /srv/load.py:2": 14, "parse /srv/load.py:9": 10}),
])
def test_pprof_of_go_reads_it(converted, metric, option, total, lines):
    path = converted("a.pb.gz", metric)
    done = subprocess.run([*PPROF, "-top", "-lines", "-unit=kb", option, path], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done
    assert f"Total samples = {total * 1024:g}kB" in done.stdout.replace(".0kB", "kB"), done.stdout
    flat = {}
    for row in done.stdout.splitlines():
        fields = row.split(maxsplit=5)
        if len(fields) == 6 and fields[0].endswith("kB"):
            flat[fields[5]] = float(fields[0][:-2]) / 1024
    for line, mib in lines.items():
        assert flat[line] == mib, done.stdout


# ---- memray's ----

PEAK, ALL = 13228648, 14536045  # metadata.peak_memory, total_bytes_allocated


def by_line(path: Path) -> dict[str, int]:
    sums: dict[str, int] = {}
    for stack, number in stacks(path).items():
        sums[stack[-1]] = sums.get(stack[-1], 0) + number
    return sums


@pytest.mark.parametrize("name", ["peak.csv", "peak.speedscope.json"])
def test_memray_with_lines(converted, name):
    found = by_line(converted("a.collapsed", "peak", MEMRAY / name))
    assert sum(found.values()) == PEAK
    assert found["rows (prog.py:3)"] == 12582914
    assert found["parse (prog.py:9)"] == 200200
    blocks = by_line(converted("b.collapsed", "peak_blocks", MEMRAY / name))
    assert (blocks["parse (prog.py:9)"], sum(blocks.values())) == (200, 450)


def test_memray_csv_has_threads(converted):
    threads = {stack[0] for stack in stacks(converted("a.collapsed", "peak", MEMRAY / "peak.csv"))}
    assert threads == {"thread (1)", "thread (2): wörker"}


def test_memray_gprof2dot(converted):
    found = by_line(converted("a.collapsed", "peak", MEMRAY / "gprof2dot.json"))
    assert sum(found.values()) == PEAK
    assert found["parse (prog.py)"] == 600400


def test_memray_stats(converted):
    found = by_line(converted("a.collapsed", "allocated", MEMRAY / "stats.json"))
    assert sum(found.values()) == ALL
    assert found["rows (prog.py:3)"] == 12582914
    assert found["<all other lines>"] == ALL - 12582914 - 1048577 - 400200 - 200200 - 79589
    assert by_line(converted("b.collapsed", "blocks", MEMRAY / "stats.json"))["parse (prog.py:10)"] == 200


@pytest.mark.parametrize("text, words", [
    ("allocator,num_allocations,size,tid,thread_name,stack_trace\nMALLOC,1\n", "row 1 has not 6 fields"),
    ("allocator,num_allocations,size,tid,thread_name,stack_trace\nMALLOC,x,1,1,0x1,f;a;1\n", "row 1 has no number"),
    ('{"costs":[{"description":"Memory"}],"events":[{"callchain":[3],"cost":[1]}],"functions":[]}',
     "a function that is not there"),
])
def test_memray_damaged(tmp_path, text, words):
    (tmp_path / "x").write_text(text)
    done = fathom("convert", tmp_path / "x", "-o", tmp_path / "y.collapsed")
    assert done.returncode and words in done.stderr.decode(), done
    assert not (tmp_path / "y.collapsed").exists()
