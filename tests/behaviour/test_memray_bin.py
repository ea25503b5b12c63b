"""memray's own files: what Fathom says of them is what memray says of them.

The .bin files in tests/golden/memray were recorded of recorded.py there, by memray 1.10 (version 10, with --aggregate), 1.17.2 (11),
1.19.3 (12, Python 3.9, uncompressed) and 1.20 (13: Python 3.10 with --native, and 3.15); paths of the machine were replaced. Beside each
lies what the memray that wrote it says of it (FileReader): the records at the peak, leaked, temporary (threshold 1) and all, added up by
thread and stack, of those that have frames of recorded.py, from there on; and the sums of all."""

from __future__ import annotations

import csv
import json
import os
import threading
from pathlib import Path

import pytest

from launch import own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import fathom

MEMRAY = Path(__file__).parent.parent / "golden" / "memray"
FILES = sorted(path.stem for path in MEMRAY.glob("v*.bin"))
METRICS = ["peak", "leaked", "temporary", "allocated"]


def said(name: str) -> dict:
    return json.loads((MEMRAY / f"{name}.json").read_text())


def run(*args) -> str:
    done = fathom(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def rows(path: Path, metric: str, folder: Path) -> tuple[list, list]:
    """As memray's: sums by thread and stack from recorded.py on; and of all."""
    out = folder / f"{path.stem}-{metric}.csv"
    run("convert", path, "-o", out, "--metric", metric)
    found: dict[tuple, list[int]] = {}
    total = [0, 0]
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            frames = [frame.split(";") for frame in row["stack_trace"].split("|") if frame]
            numbers = int(row["size"]), int(row["num_allocations"])
            total = [a + b for a, b in zip(total, numbers)]
            own = [i for i, frame in enumerate(frames) if frame[1].endswith("recorded.py")]
            if own:
                stack = "|".join(f"{name}:{line}" for name, _, line in frames[:own[-1] + 1])
                known = found.setdefault((int(row["tid"]), stack), [0, 0])
                known[:] = [a + b for a, b in zip(known, numbers)]
    return [[*key, *numbers] for key, numbers in sorted(found.items())], total


def test_there_are_all_versions():
    assert [name.split("-")[0] for name in FILES] == ["v10", "v11", "v12", "v13", "v13"]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", FILES)
def test_by_stack(name, metric, tmp_path):
    expected = said(name).get(metric)
    if not expected:
        assert "aggregated" in name and metric in ("temporary", "allocated")
        done = fathom("convert", MEMRAY / f"{name}.bin", "-o", tmp_path / "x.csv", "--metric", metric)
        assert done.returncode == 12, done
        return
    found, total = rows(MEMRAY / f"{name}.bin", metric, tmp_path)
    if "aggregated" in name:  # of rows that it adds up memray counts the rows, not their blocks
        assert total[0] == expected["bytes"]
        assert [row[:3] for row in found] == [row[:3] for row in expected["rows"]]
    else:
        assert total == [expected["bytes"], expected["blocks"]]
        assert found == expected["rows"]


@pytest.mark.parametrize("name", FILES)
def test_the_rest(name):
    expected = said(name)
    report = json.loads(run("report", "--memory", "--json", MEMRAY / f"{name}.bin"))
    assert report["memory"]["peak_bytes"] == expected["peak_memory"]
    assert report["command"] == expected["command"]
    processes = json.loads(run("report", "--processes", "--json", MEMRAY / f"{name}.bin"))["processes"]
    assert [process["process"] for process in processes] == [expected["pid"]]
    threads = json.loads(run("report", "--threads", "--json", MEMRAY / f"{name}.bin"))
    assert "wörker" in json.dumps(threads, ensure_ascii=False) or "aggregated" in name


@pytest.mark.parametrize("name", FILES)
def test_resident_memory_over_time(name, tmp_path):
    looks = said(name)["looks"]
    run("convert", MEMRAY / f"{name}.bin", "-o", tmp_path / "mprofile_x.dat")
    lines = [line.split() for line in (tmp_path / "mprofile_x.dat").read_text().splitlines()]
    assert lines[0][0] == "CMDLINE"
    found = [(float(mib), round(float(at) * 1000)) for kind, mib, at in lines[1:]]
    assert found == [(pytest.approx(rss / (1 << 20), abs=1e-6), ms) for ms, rss, heap in looks]


def test_killed(tmp_path):
    """As memray leaves it: the records up to then, and zeros."""
    cut = said("v12-3.9")["cut"]
    file = tmp_path / "killed.bin"
    file.write_bytes((MEMRAY / "v12-3.9.bin").read_bytes()[:cut["at"]] + bytes(4096))
    for metric in METRICS:
        assert rows(file, metric, tmp_path)[1] == cut[metric]
    done = fathom("report", "--memory", file)
    assert done.returncode == 0 and b"ends early, as that of a program that was killed" in done.stdout


def test_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=((MEMRAY / "v13-3.15.bin").read_bytes(),))
    writer.start()
    done = fathom("report", "--memory", "--json", tmp_path / "pipe")
    writer.join()
    assert json.loads(done.stdout)["memory"]["peak_bytes"] == said("v13-3.15")["peak_memory"]


@pytest.mark.parametrize("bytes_, status, words", [
    (b"memray\0\x0d", 5, "cut off in its header"),
    (b"memray\0\x0d\0\0\0" + b"\1" * 20, 5, "its header is damaged or cut off"),
    (b"memray\0\x09\0\0\0" + b"\1" * 200, 12, "version 9, and Fathom reads versions 10 to 13"),
    (b"memray\0\x0e\0\0\0" + b"\1" * 200, 12, "memray transform csv"),
])
def test_refused(tmp_path, bytes_, status, words):
    (tmp_path / "x.bin").write_bytes(bytes_)
    done = fathom("report", tmp_path / "x.bin")
    assert done.returncode == status and words in done.stderr.decode(), done
    assert done.stderr.count(b"\n") == 1


# ---- every way out ----

def without_stack(metric: str, folder: Path) -> int:
    """Bytes of no Python function."""
    run("convert", MEMRAY / "v13-3.15.bin", "-o", folder / "all.csv", "--metric", metric)
    with open(folder / "all.csv", newline="") as file:
        return sum(int(row["size"]) for row in csv.DictReader(file) if not row["stack_trace"])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("out", ["x.fathom", "x.collapsed", "x.speedscope.json", "x.pprof", "x.csv", "callgrind.out.x"])
def test_written_again(out, metric, tmp_path):
    """What is written of a .bin has the sum that memray says."""
    bytes_ = said("v13-3.15")[metric]["bytes"]
    file = tmp_path / out
    run("convert", MEMRAY / "v13-3.15.bin", "-o", file, *([] if out == "x.fathom" else ["--metric", metric]))
    if out == "x.collapsed":
        assert sum(int(line.rsplit(" ", 1)[1]) for line in file.read_text().splitlines()) == bytes_
    elif out == "x.speedscope.json":
        assert sum(sum(profile["weights"]) for profile in json.loads(file.read_text())["profiles"]) == bytes_
    elif out == "callgrind.out.x":  # has functions alone
        sums = [line.split()[1] for line in file.read_text().splitlines() if line.startswith(("summary:", "totals:"))]
        assert int(sums[-1]) == bytes_ - without_stack(metric, tmp_path)
    elif out == "x.csv":  # no CSV says of which instant it is: it is taken for the peak
        assert rows(file, "peak", tmp_path)[1][0] == bytes_
    elif (out, metric) != ("x.pprof", "temporary"):  # pprof's heap has no place for these
        assert rows(file, metric, tmp_path)[1][0] == bytes_


@pytest.mark.parametrize("part", ["summary", "functions", "tree", "lines", "leaks", "temporaries", "stats", "threads", "processes"])
@pytest.mark.parametrize("name", FILES)
def test_every_report(name, part):
    text = run("report", f"--memory={part}", MEMRAY / f"{name}.bin")
    assert text.count("\n") > 4
    json.loads(run("report", f"--memory={part}", "--json", MEMRAY / f"{name}.bin"))
    run("report", f"--memory={part}", "--csv", MEMRAY / f"{name}.bin")


def test_the_page_of_it(tmp_path):
    run("view", MEMRAY / "v11.bin", "-o", tmp_path / "x.html")
    assert (tmp_path / "x.html").stat().st_size > 100_000
    run("graph", MEMRAY / "v11.bin", "-o", tmp_path / "x.dot")
    run("plot", MEMRAY / "v11.bin", "-o", tmp_path / "x.svg")
