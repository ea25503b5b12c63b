"""Reports of memory. The recording is the one that tests/unit/tool_memory.c draws and writes; every
expected number is worked out from that drawing."""

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM

TOOL = Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_memory"

# (name, line): own bytes at the peak, with callees, own blocks; of process 100
PEAK = {
    ("block", 4): (4_400_000, 4_400_000, 44),
    ("work", 2): (1_500_000, 1_500_000, 15),
    ("<before the program>", 0): (1_000_000, 1_000_000, 10_000),
    ("walk", 9): (400_000, 800_000, 4),  # nested in itself: once
    ("<module>", 16): (0, 4_800_000, 0),
    ("main", 12): (0, 4_000_000, 0),
    ("main", 13): (0, 800_000, 0),
    ("walk", 8): (0, 150_000, 0),
}


def draw(folder, *words):
    path = folder / "app.fathom"
    subprocess.run([TOOL, path, *words], check=True, timeout=300)
    return str(path)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module")
def with_calls(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("memory_and_calls"), "calls")


def run(*args, status=0):
    done = subprocess.run([FATHOM, "report", *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def as_json(*args):
    return json.loads(run("--json", *args))


def as_csv(*args):
    return list(csv.DictReader(io.StringIO(run("--csv", *args), newline="")))


def body(text):
    """What stands below the header, as lines."""
    return text.split("\n\n", 1)[1].splitlines()


def rows(elements, metric="peak"):
    blocks = metric + "_blocks" if metric != "allocated" else "blocks"
    return {(e["name"], e["line"]): (e[f"{metric}_bytes"], e[f"total_{metric}_bytes"], e[blocks])
            for e in elements}


# ---- the summary ----


def test_the_lines_at_the_peak(recording):
    page = as_json("--memory", "--process", "100", recording)
    assert rows(page["functions"]) == PEAK
    own = [f["peak_bytes"] for f in page["functions"]]
    assert own == sorted(own, reverse=True)
    assert page["at"] == "peak"
    assert {f["name"]: f["first_line"] for f in page["functions"] if f["line"]} == {
        "block": 3, "work": 1, "walk": 6, "<module>": 1, "main": 11}


def test_the_sums(recording):
    memory = as_json("--memory", "--process", "100", recording)["memory"]
    # 1000 before, 4800 below <module>, 1500 of work, 700 of pool
    assert (memory["peak_bytes"], memory["peak_blocks"]) == (8_000_000, 10_000 + 48 + 15 + 7)
    assert (memory["leaked_bytes"], memory["leaked_blocks"]) == (2_100_000, 1_000 + 5 + 15)
    assert (memory["allocated_bytes"], memory["blocks"]) == (17_000_000, 20_000 + 48 + 15 + 7 + 800)
    assert (memory["temporary_bytes"], memory["temporary_blocks"]) == (8_000_000, 800)
    assert (memory["fathom_bytes"], memory["processes"]) == (1 << 20, 1)
    assert memory["outside"]["peak_bytes"] == 700_000  # of pool, which ran no Python code


def test_the_page(recording):
    text = run("--memory", "--process", "100", "--width", "120", recording)
    head = text.split("\n\n", 1)[0].splitlines()
    assert head == [
        "python3 app.py",
        "Python 3.13.0 · 850 ms wall · 1 process · 3 threads",
        "peak 7.63 MiB in 10,070 blocks · at the end 2.00 MiB in 1,020 blocks",
        "allocated 16.2 MiB in 20,870 blocks",
        "temporary (freed at once) 7.63 MiB in 800 blocks",
        "resident at most 11.4 MiB, as looked at 3 times",  # 12 million
        "Fathom took 1.00 MiB for it in the process",
    ]
    lines = body(text)
    assert lines[0].split() == ["self", "%", "blocks", "total", "%", "allocated", "temporary",
                                "function"]
    # 4.4 of 8 million bytes; 4,400,000 / 1,048,576 = 4.196
    assert lines[1].split() == ["4.20", "MiB", "55.0", "44", "4.20", "MiB", "55.0", "4.20", "MiB",
                                "block", "/srv/app.py:4"]
    assert lines[4].split()[:8] == ["391", "KiB", "5.0", "4", "781", "KiB", "10.0", "391"]
    assert lines[-1] == "684 KiB (8.8 %) in no Python function"


def test_two_processes_have_two_peaks(recording):
    head = run("--memory", recording).split("\n\n", 1)[0]
    assert "peaks of 2 processes, added up, 10.0 MiB in 10,095 blocks" in head
    # 2 million bytes
    assert "\n1.91 MiB of that were inherited by fork, and count for parent and child\n" in head
    assert as_json("--memory", recording)["memory"]["inherited_peak_bytes"] == 2_000_000
    assert "of some processes Python's own allocators are there as arenas only" in head
    assert "only" not in run("--memory", "--process", "100", recording).split("\n\n", 1)[0]
    alone = run("--memory", "--process", "200", recording)
    assert "\nPython's own allocators are there as arenas only\n" in alone
    assert [line.split()[-1] for line in body(alone)[1:3]] == ["fork>", "/srv/lib.py:3"]


def test_what_another_file_does_not_say(recording, tmp_path):
    """memray's table has the peak alone, pprof's file no temporary blocks: neither says 0, nor which allocators it is of."""
    (tmp_path / "a.csv").write_text("allocator,num_allocations,size,tid,thread_name,stack_trace\n"
                                    "MALLOC,2,1024,1,0x1,rows;/srv/app.py;3|main;/srv/app.py;9\n")
    head = run("--memory", str(tmp_path / "a.csv")).split("\n\n", 1)[0].splitlines()
    assert head[1:] == ["1 process · 1 thread", "peak 1.00 KiB in 2 blocks"]
    assert [p["recorded"] for p in as_json("--memory=processes", str(tmp_path / "a.csv"))["processes"]] == ["unknown"]
    made = subprocess.run([FATHOM, "convert", "--metric", "peak", "-o", tmp_path / "a.pb.gz", recording], check=False, capture_output=True)
    assert made.returncode == 0, made
    head = run("--memory", str(tmp_path / "a.pb.gz")).split("\n\n", 1)[0]
    assert "allocated" in head and "temporary" not in head and "at the end" not in head and "arenas" not in head


def test_what_was_seen_from_outside(recording):
    text = run("--memory", recording)
    # 30 million
    # The sum of their heaps was looked at, too; but what children inherited is twice in that, and a peak between two
    # looks is not.
    assert "\nresident at most 28.6 MiB, as looked at 2 times\n" in text and "together" not in text
    memory = as_json("--memory", recording)["memory"]
    assert (memory["resident_bytes"], memory["looks"]) == (30_000_000, 2) and "together_bytes" not in memory
    done = subprocess.run([FATHOM, "report", "--memory", "--at", "together", recording], capture_output=True, text=True)
    assert done.returncode == 12 and "does not tell what several processes had together" in done.stderr
    assert "looked at" not in run("--memory", "--thread", "100", recording)
    assert "looks" not in as_json("--memory", "--process", "200", recording)["memory"]


def test_whole_functions(recording):
    page = as_json("--memory=functions", "--process", "100", recording)
    assert rows(page["functions"]) == {
        ("block", 3): (4_400_000, 4_400_000, 44),
        ("work", 1): (1_500_000, 1_500_000, 15),
        ("<before the program>", 0): (1_000_000, 1_000_000, 10_000),
        ("walk", 6): (400_000, 800_000, 4),
        ("main", 11): (0, 4_800_000, 0),
        ("<module>", 1): (0, 4_800_000, 0),
    }


def test_a_narrow_page_keeps_names(recording):
    for width in (80, 60):
        text = run("--memory", "--width", str(width), recording)
        table = text.split("\n\n")[1].splitlines()
        assert all(len(line) <= 80 for line in table)
        assert any(line.endswith("block  app.py:4") for line in table)
    wide = body(run("--memory", "--width", "100", recording))[0].split()
    assert body(run("--memory", "--width", "99", recording))[0].split() == [
        word for word in wide if word not in ("allocated", "temporary")]


# ---- instants ----


def test_at_the_end(recording):
    page = as_json("--memory=leaks", recording)
    assert page == as_json("--memory", "--at", "end", recording)
    assert page["at"] == "end"
    assert rows(page["functions"], "leaked") == {
        ("work", 2): (1_500_000, 1_500_000, 15),
        ("block", 4): (500_000, 500_000, 5),
        ("work", 3): (500_000, 500_000, 5),
        ("<before the program>", 0): (100_000, 100_000, 1_000),
        ("<module>", 16): (0, 500_000, 0),
        ("main", 12): (0, 500_000, 0),
    }
    # of 2.6 million bytes in both processes
    assert body(run("--memory=leaks", recording))[1].split()[:4] == ["1.43", "MiB", "57.7", "15"]


def test_what_was_freed_at_once(recording):
    page = as_json("--memory=temporaries", recording)
    assert page == as_json("--at", "temporary", recording)
    assert rows(page["functions"], "temporary") == {
        ("main", 14): (8_000_000, 8_000_000, 800), ("<module>", 16): (0, 8_000_000, 0)}


def test_all_that_was_allocated(recording):
    page = as_json("--memory", "--at", "all", "--process", "100", recording)
    found = rows(page["functions"], "allocated")
    assert found["main", 14] == (8_000_000, 8_000_000, 800)
    assert found["<before the program>", 0] == (2_000_000, 2_000_000, 20_000)
    assert found["<module>", 16] == (0, 12_800_000, 0)
    assert [f["name"] for f in page["functions"]][:3] == ["main", "block", "<before the program>"]


# ---- sorting and choosing ----


@pytest.mark.parametrize("key, first", [
    ("self", "block"), ("peak", "block"), ("time", "block"),
    ("total", "<module>"), ("total_peak", "<module>"),
    ("calls", "<before the program>"), ("peak_blocks", "<before the program>"),
    ("total_peak_blocks", "<before the program>"),
    ("name", "<before the program>"),
])
def test_sort_keys(recording, key, first):
    page = as_json("--memory", "--at", "peak", "--sort", key, "--process", "100", recording)
    assert page["functions"][0]["name"] == first


def test_a_key_of_memory_asks_for_memory(with_calls):
    page = as_json("--sort", "leaked", with_calls)
    assert page["at"] == "end" and page["functions"][0]["name"] == "work"
    assert as_json("--sort", "allocated", with_calls)["at"] == "all"
    assert as_json("--sort", "allocated", "--at", "peak", with_calls)["at"] == "peak"
    assert "at" not in as_json("--sort", "self", with_calls)


def test_rows_are_chosen_as_ever(recording):
    assert len(as_json("--memory", "-n", "2", recording)["functions"]) == 2
    assert [f["line"] for f in as_json("--memory", "-r", "walk", recording)["functions"]] == [9, 8]
    assert [f["name"] for f in as_json("--memory", "--thread", "101", recording)["functions"]] == [
        "work"]
    text = run("--memory", "-n", "3", "--process", "100", recording)
    assert "3 of 8 lines" in text


def test_folding_gives_memory_to_the_caller(recording):
    page = as_json("--memory", "--fold", "block", "--process", "100", recording)
    found = rows(page["functions"])
    assert ("block", 4) not in found
    assert found["main", 12] == (4_000_000, 4_000_000, 40)
    assert found["walk", 9] == (400_000 + 250_000, 800_000, 4 + 3)
    assert found["walk", 8] == (150_000, 150_000, 1)
    kept = as_json("--memory", "--filter", "walk", recording)
    assert kept["memory"]["peak_bytes"] == 800_000
    rooted = as_json("--memory", "--root", "walk", recording)
    assert rows(rooted["functions"])["walk", 9] == (400_000, 800_000, 4)


# ---- the other reports ----


def test_the_tree(recording):
    lines = body(run("--memory=tree", "--process", "100", recording))
    assert run("--memory", "--tree", recording) == run("--memory=tree", recording)
    assert lines[0].split() == ["total", "%", "self", "blocks", "function"]
    names = [re.sub(r"^.*?([├└])", r"\1", line) for line in lines]
    assert "├ <module>  /srv/app.py:16" in names and "└ <before the program>" in names
    [outer] = [line for line in lines if line.endswith("  └ walk  /srv/app.py:9")]
    # 800,000 bytes in 8 blocks, 300,000 of them its own
    assert outer.split()[:6] == ["781", "KiB", "10.0", "293", "KiB", "8"]
    assert lines[-1].split() == ["684", "KiB", "8.8", "684", "KiB", "7", "process", "100",
                                 "thread", "102", "pool"]
    assert not any("main  /srv/app.py:14" in line for line in lines)


def test_the_tree_for_programs(recording):
    tree = as_json("--memory=tree", "--process", "100", recording)["tree"]
    by_id = {node["node"]: node for node in tree}
    paths = {}
    for node in tree:
        path, at = [], node
        while at["parent"] is not None:
            path.append((at["name"], at["line"]))
            at = by_id[at["parent"]]
        paths[at["thread"], tuple(reversed(path))] = (node["peak_bytes"], node["total_peak_bytes"])
    top = (("<module>", 16),)
    walk = top + (("main", 13), ("walk", 9))
    assert paths[100, walk] == (300_000, 800_000)
    assert paths[100, walk + (("walk", 9),)] == (100_000, 150_000)
    assert paths[100, walk + (("walk", 8), ("block", 4))] == (150_000, 150_000)
    assert paths[102, ()] == (700_000, 700_000)
    table = as_csv("--memory=tree", "--process", "100", recording)
    assert len(table) == len([node for node in tree if node["parent"] is not None])
    assert {(r["function"], int(r["line"]), int(r["total_peak_bytes"])) for r in table} == {
        (n["name"], n["line"], n["total_peak_bytes"]) for n in tree if n["parent"] is not None}


def test_depth_and_smallest_branch(recording):
    lines = body(run("--memory=tree", "--depth", "2", "--min", "20", "--thread", "100", recording))
    assert [line.split("  ")[-1] for line in lines[-3:-1]] == ["/srv/app.py:16", "/srv/app.py:12"]


def test_callers_and_callees(recording):
    page = as_json("--memory", "--callers=block", recording)
    assert rows(page["functions"][0]["callers"]) == {
        ("main", 12): (4_000_000, 4_000_000, 40),
        ("walk", 9): (250_000, 250_000, 3),
        ("walk", 8): (150_000, 150_000, 1),
    }
    lines = body(run("--memory", "--callees=main", recording))
    assert lines[0].endswith("function → its callees")
    assert lines[1].split()[-2:] == ["main", "/srv/app.py:12"]
    assert lines[2].split() == ["40", "3.81", "MiB", "3.81", "MiB", "100.0", "→", "block",
                                "/srv/app.py:4"]
    table = as_csv("--memory", "--callers=block", recording)
    assert {(r["caller"], r["caller_line"]): r["peak_bytes"] for r in table} == {
        ("main", "12"): "4000000", ("walk", "9"): "250000", ("walk", "8"): "150000"}


def test_lines_with_their_source(recording):
    lines = body(run("--memory=lines", "--process", "100", recording))
    assert lines[1].split() == ["4.20", "MiB", "55.0", "44", "/srv/app.py:4",
                                "return", "bytearray(n)", "block"]
    assert lines[2].endswith("here = [bytes(100) for i in range(15)]  work")
    assert not any("main" in line for line in lines)  # nothing of its own at the peak
    page = as_json("--memory", "--lines=walk", recording)
    assert [(line["line"], line["peak_bytes"], line["source"]) for line in page["lines"]] == [
        (9, 400_000, "    return walk(n - 1) + [block(1)]")]
    assert run("--memory", "--hot", "1", recording) == run("--memory", "--lines", "-n", "1",
                                                           recording)
    assert as_csv("--memory=lines", recording)[0]["source"] == "    return bytearray(n)"


def test_threads_and_processes(recording):
    found = {t["thread"]: t for t in as_json("--memory", "--threads", recording)["threads"]}
    assert {t: f["peak_bytes"] for t, f in found.items()} == {
        100: 5_800_000, 101: 1_500_000, 102: 700_000, 200: 2_500_000}
    assert found[101]["name"] == "worker" and found[102]["blocks"] == 7
    assert as_csv("--memory=threads", recording)[1]["leaked_bytes"] == "1500000"
    processes = as_json("--memory=processes", recording)["processes"]
    assert [(p["process"], p["recorded"], p["peak_bytes"], p["allocated_bytes"])
            for p in processes] == [(100, "all", 8_000_000, 17_000_000),
                                    (200, "malloc", 2_500_000, 500_000)]
    lines = body(run("--memory=processes", recording))
    assert lines[1].split()[:6] == ["100", "7.63", "MiB", "76.2", "10,070", "2.00"]
    assert as_csv("--memory=processes", recording)[1]["fathom_bytes"] == str(1 << 20)


@pytest.mark.parametrize("at, head, rows", [
    # 600,000 + 1,500,000 + 500,000 bytes were never freed, in 1,005, 15 and 5 blocks
    ("end", "at end % blocks allocated temporary name",
     ["586 KiB 23.1 1,005", "1.43 MiB 57.7 15", "0 0", "488 KiB 19.2 5"]),
    ("all", "allocated % blocks at end temporary name",
     ["14.1 MiB 84.6 20,848", "1.43 MiB 8.6 15", "684 KiB 4.0 7", "488 KiB 2.9 5"]),
    ("temporary", "temporary % blocks at end allocated name", ["7.63 MiB 100.0 800", "0 0", "0 0", "0 0"]),
    ("peak", "peak % blocks at end allocated temporary name",
     ["5.53 MiB 55.2 10,048", "1.43 MiB 14.3 15", "684 KiB 6.7 7", "2.38 MiB 23.8 25"]),
])
def test_threads_are_of_the_instant_asked_for(recording, at, head, rows):
    lines = [" ".join(line.split()) for line in body(run("--memory=threads", "--at", at, recording))]
    assert lines[0] == "process thread " + head
    for line, ids, row in zip(lines[1:], ("100 100", "100 101", "100 102", "200 200"), rows, strict=True):
        assert line.startswith(f"{ids} {row} "), line


def test_processes_are_of_the_instant_asked_for(recording):
    lines = [" ".join(line.split()) for line in body(run("--memory=processes", "--at", "end", recording))]
    assert lines[0] == "process parent at end % blocks allocated temporary Fathom command"
    assert lines[1].startswith("100 2.00 MiB 80.8 1,020 ") and lines[2].startswith("200 100 488 KiB 19.2 5 ")


def test_statistics(recording):
    page = as_json("--memory=stats", "--process", "100", recording)
    assert page["at"] == "all"
    assert page["kinds"] == [{"name": "Python objects", "blocks": 5000, "bytes": 3_000_000},
                             {"name": "malloc", "blocks": 100, "bytes": 7_000_000}]
    assert [s for s in page["sizes"] if s["blocks"]] == [
        {"from": 32, "below": 48, "blocks": 4000}, {"from": 48, "below": 64, "blocks": 1000},
        {"from": 1024, "below": 1536, "blocks": 100}]
    assert page["lives"] == [
        {"from": 0, "below": 1, "blocks": 800}, {"from": 1, "below": 2, "blocks": 50},
        {"from": 2, "below": 4, "blocks": 0}, {"from": 4, "below": 8, "blocks": 10}]
    assert [f["name"] for f in page["most_bytes"]][:2] == ["main", "block"]
    assert [f["name"] for f in page["most_blocks"]][:2] == ["<before the program>", "main"]
    table = as_csv("--memory=stats", "--process", "100", recording)
    assert [(r["name"], r["bytes"]) for r in table if r["table"] == "kind"] == [
        ("Python objects", "3000000"), ("malloc", "7000000")]


def test_statistics_for_people(recording):
    text = run("--memory=stats", "-n", "1", "--process", "100", recording)
    kinds, sizes, lives, by_bytes, by_blocks = text.split("\n\n")[1:]
    assert kinds.splitlines()[1].split() == ["Python", "objects", "5,000", "98.0", "2.86", "MiB"]
    # an octave is a line: 4000 + 1000; the longest bar has 30 cells, 100 / 5000 of that are 0.6
    assert sizes.splitlines()[1].split() == ["32", "B", "…", "5,000", "98.0", "█" * 30]
    assert sizes.splitlines()[-1].split() == ["1.00", "KiB", "…", "100", "2.0", "▋"]
    assert lives.splitlines()[1].split() == ["0", "800", "93.0", "█" * 30]
    assert by_bytes.splitlines()[0] == "Most bytes allocated in all"
    assert [line.split()[-2] for line in by_bytes.splitlines()[2:]] == ["main"]
    assert by_blocks.splitlines()[2].endswith("<before the program>")


def test_types(recording):
    page = as_json("--memory=types", "--process", "100", recording)
    assert rows(page["types"]) == {
        ("bytearray", 0): (3_900_000, 3_900_000, 39),
        ("bytes", 0): (500_000, 500_000, 5),
        ("list", 0): (300_000, 300_000, 1),
    }
    lines = body(run("--memory=types", "--process", "100", "--width", "80", recording))
    assert lines[0].split() == ["self", "%", "blocks", "type"]
    assert lines[1].split() == ["3.72", "MiB", "48.8", "39", "bytearray"]
    # 8,000,000 - 4,700,000
    assert lines[-1] == "3.15 MiB (41.2 %) in no object itself"
    assert "2 of 3 types" in run("--memory=types", "-n", "2", recording)


def test_who_made_objects_of_a_type(recording):
    for words in (["--memory=types", "--callers=bytes"], ["--callers=bytes", "--memory=types"]):
        [found] = as_json(*words, recording)["types"]
        assert rows(found["callers"]) == {("work", 2): (500_000, 500_000, 5)}


def test_no_types_are_said(tmp_path, python):
    path = tmp_path / "memory.fathom"
    subprocess.run([FATHOM, "run", "--memory", "-q", "-o", path, "--python", python, "-c", "0"],
                   check=True, timeout=300)
    error = run("--memory=types", str(path), status=12)
    assert error.count("\n") == 1 and "holds no types" in error


# ---- with time, without memory ----


def test_time_is_as_without_memory(with_calls):
    text = run(with_calls)
    assert "memory was recorded, too: --memory" in text
    assert [line.split()[-2] for line in body(text)[1:]] == ["main", "block"]
    page = as_json("--tree", with_calls)
    assert [node["name"] for node in page["tree"] if node["parent"] is not None] == ["main", "block"]
    assert not any("peak" in key for node in page["tree"] for key in node)
    assert as_csv(with_calls)[0].keys() == {
        "function", "file", "line", "calls", "primitive_calls", "resumes", "self_s", "total_s",
        "min_s", "max_s", "suspended_s"}
    assert rows(as_json("--memory", "--process", "100", with_calls)["functions"]) == PEAK


def test_memory_alone_needs_no_option(recording):
    assert run(recording) == run("--memory", recording)
    assert run("--tree", recording) == run("--memory", "--tree", recording)
    error = run("--waits", recording, status=12)
    assert error.count("\n") == 1 and "holds memory alone" in error


def test_no_memory_is_said(tmp_path):
    path = tmp_path / "sampled.fathom"
    subprocess.run([TOOL.with_name("tool_sampled"), path], check=True, timeout=300)
    error = run("--memory", str(path), status=12)
    assert error == (f"fathom report: {path} holds no memory: it was not recorded, which "
                     "`fathom run --memory` does\n")


def test_why_there_is_no_memory(tmp_path):
    path = tmp_path / "true.fathom"
    subprocess.run([FATHOM, "run", "--memory", "-q", "-o", path, "true"], check=True,
                   capture_output=True, timeout=300)
    error = run("--memory", str(path), status=12)
    assert error.startswith(f"fathom report: {path} holds no memory: no Python was profiled")
    assert error.count("\n") == 1


@pytest.mark.parametrize("words", [
    ["--memory", "--waits"], ["--memory", "--cpu"], ["--memory", "--pstats"],
    ["--memory=peaks"], ["--at", "noon"], ["--memory", "--unit", "ms"], ["--memory", "--source"],
])
def test_what_does_not_go_together(recording, words):
    error = run(*words, recording, status=2)
    assert error.startswith("fathom report: ")


def test_files_are_added_up(recording):
    twice = as_json("--memory", recording, recording)
    once = as_json("--memory", recording)
    assert twice["memory"]["peak_bytes"] == 2 * once["memory"]["peak_bytes"] == 21_000_000
    assert twice["functions"][0]["blocks"] == 88
