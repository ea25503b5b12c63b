"""`fathom run --memory` and its reports, of a program whose allocations are known byte for byte. What a
bytearray takes is said by the Python that makes it; all else follows from tests/programs/memory_sizes.py."""

import json
import re
import subprocess

import pytest

from conftest import FATHOM
from launch import program

PROGRAM = program("memory_sizes.py")
SOURCE = open(PROGRAM, encoding="utf-8").read().splitlines()


def line_of(text):
    [number] = [i for i, line in enumerate(SOURCE, 1) if line.strip() == text]
    return number


BLOCK = line_of("return bytearray(1000)")
OWN = line_of("own = bytearray(20000)")
DEEPER = line_of("nested(depth - 1)")
LARGE = line_of("large = bytearray(5000000)")
HERE = line_of("here = bytearray(300000)")
NESTED = line_of("nested(4)")
MORE = line_of("more = bytearray(300000)")


def record(tmp_path, python, *words, collector="--memory", quiet="-q"):
    """The path of a recording, the sizes that the program printed, and what Fathom printed."""
    path = tmp_path / "sizes.fathom"
    done = subprocess.run([FATHOM, "run", collector, *([quiet] if quiet else []), "-o", path,
                           "--python", python, PROGRAM, *words],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    sizes = json.loads(done.stdout.splitlines()[0])
    return str(path), {int(n): size for n, size in sizes.items()}, done.stderr


def report(path, *words):
    done = subprocess.run([FATHOM, "report", "--memory", *words, "--json", path],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lines(page):
    return {(f["name"], f["line"]): f for f in page["functions"]}


def numbers(found, name):
    return found[f"{name}_bytes"], found["blocks" if name == "allocated" else f"{name}_blocks"]


def test_every_line(tmp_path, python):
    path, size, _ = record(tmp_path, python)
    found = lines(report(path))
    block, own, large = found["block", BLOCK], found["nested", OWN], found["nested", LARGE]
    assert numbers(block, "peak") == (100 * size[1000], 200)
    assert numbers(block, "leaked") == (100 * size[1000], 200)
    assert numbers(block, "allocated") == (600 * size[1000], 1200)
    assert numbers(block, "temporary") == (500 * size[1000], 1000)
    assert numbers(own, "peak") == numbers(own, "allocated") == (5 * size[20000], 10)
    assert numbers(own, "leaked") == (0, 0)
    assert numbers(large, "peak") == (size[5000000], 2)
    assert numbers(large, "leaked") == (0, 0)


def test_recursion_counts_once(tmp_path, python):
    path, size, _ = record(tmp_path, python)
    found = lines(report(path))
    assert found["nested", DEEPER]["peak_bytes"] == 0
    assert found["nested", DEEPER]["total_peak_bytes"] == 4 * size[20000] + size[5000000]
    assert found["<module>", NESTED]["total_peak_bytes"] == 5 * size[20000] + size[5000000]
    whole = lines(report(path, "--memory=functions"))
    [nested] = [f for (name, _), f in whole.items() if name == "nested"]
    assert nested["peak_bytes"] == nested["total_peak_bytes"] == 5 * size[20000] + size[5000000]


def test_the_thread_that_asked(tmp_path, python):
    path, size, _ = record(tmp_path, python)
    threads = report(path, "--threads")["threads"]
    assert len(threads) == 2
    for thread in threads:
        found = lines(report(path, "--thread", str(thread["thread"])))
        assert (("work", HERE) in found) == (thread["process"] != thread["thread"])
    assert numbers(lines(report(path))["work", HERE], "leaked") == (size[300000], 2)
    sums = report(path)["memory"]
    assert sum(t["peak_bytes"] for t in threads) == sums["peak_bytes"]


def test_a_fork_has_its_own(tmp_path, python):
    path, size, _ = record(tmp_path, python, "fork")
    processes = {p["process"]: p for p in report(path, "--processes")["processes"]}
    [child] = [p for p in processes.values() if p["parent"] in processes]
    parent = processes[child["parent"]]
    found = lines(report(path, "--process", str(child["process"])))
    assert numbers(found["child", MORE], "peak") == (size[300000], 2)
    # What the parent had and has still, but for what a child of fork frees: its other threads.
    inherited = found["<inherited by fork>", 0]["peak_bytes"]
    assert 100 * size[1000] + size[300000] < inherited <= parent["leaked_bytes"]
    assert ("child", MORE) not in lines(report(path, "--process", str(parent["process"])))


def test_sums_and_statistics_agree(tmp_path, python):
    path, _, _ = record(tmp_path, python)
    page = report(path, "--memory=stats")
    memory = page["memory"]
    assert sum(k["blocks"] for k in page["kinds"]) == memory["blocks"]
    assert sum(k["bytes"] for k in page["kinds"]) == memory["allocated_bytes"]
    assert sum(s["blocks"] for s in page["sizes"]) == memory["blocks"]
    # What is freed by the thread that made it lived; temporaries lived for no or one allocation.
    assert sum(life["blocks"] for life in page["lives"]) <= memory["blocks"] - memory["leaked_blocks"]
    assert sum(life["blocks"] for life in page["lives"][:2]) == memory["temporary_blocks"]
    everything = report(path, "--at", "all")["functions"]
    assert sum(f["allocated_bytes"] for f in everything) + memory["outside"]["allocated_bytes"] == \
        memory["allocated_bytes"]


def test_malloc_alone(tmp_path, python):
    """The bytearray itself is a Python object, in an arena; its bytes are from malloc."""
    path, size, _ = record(tmp_path, python, collector="--memory=malloc")
    found = lines(report(path))
    assert numbers(found["nested", LARGE], "peak") == (size[5000000] - size[0], 1)
    assert numbers(found["nested", OWN], "peak") == (5 * (size[20000] - size[0]), 5)
    [process] = report(path, "--processes")["processes"]
    assert process["recorded"] == "malloc"


def test_the_table_at_the_end(tmp_path, python):
    _, size, printed = record(tmp_path, python, quiet=None)
    memory = printed.split("\n\n")
    assert re.search(r"^peak .* MiB in [\d,]+ blocks · at the end .* blocks$", memory[0], re.M)
    assert memory[1].splitlines()[0].split()[:3] == ["self", "%", "blocks"]
    assert any(f"nested  memory_sizes.py:{LARGE}" in line for line in memory[1].splitlines())
    [row] = [line for line in memory[1].splitlines() if f"memory_sizes.py:{LARGE}" in line]
    assert row.split()[:2] == [f"{size[5000000] / 2**20:.2f}", "MiB"]


def test_memory_with_calls_is_one_recording(tmp_path, python):
    path = tmp_path / "both.fathom"
    done = subprocess.run([FATHOM, "run", "--memory", "--calls", "-q", "-o", path,
                           "--python", python, PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    size = {int(n): s for n, s in json.loads(done.stdout.splitlines()[0]).items()}
    assert numbers(lines(report(str(path)))["block", BLOCK], "peak") == (100 * size[1000], 200)
    page = json.loads(subprocess.run([FATHOM, "report", "--json", path], capture_output=True,
                                     text=True, timeout=300, check=True).stdout)
    calls = {f["name"]: f["calls"] for f in page["functions"] if f["file"] == PROGRAM}
    assert (calls["block"], calls["nested"], calls["waste"]) == (600, 5, 1)
    assert not any(f["name"] == "<before the program>" for f in page["functions"])


@pytest.mark.parametrize("words", [["--memory"], ["--memory=tree"], ["--memory=stats"]])
def test_no_memory_was_recorded(tmp_path, python, words):
    path = tmp_path / "calls.fathom"
    subprocess.run([FATHOM, "run", "--calls", "-q", "-o", path, "--python", python, "-c", "0"],
                   check=True, timeout=300)
    done = subprocess.run([FATHOM, "report", *words, path], capture_output=True, text=True,
                          timeout=300)
    assert (done.returncode, done.stdout) == (12, "")
    assert done.stderr.count("\n") == 1 and "holds no memory" in done.stderr
