"""`fathom merge` of many recordings: sums by hand, memory that does not grow with their number."""

from __future__ import annotations

import json
import os
import subprocess

import live_store
from pstats_tools import FATHOM, fails, fathom

MS = 1_000_000
FUNCTIONS = 1000


def recording(folder, pid: int, functions: int = FUNCTIONS):
    """A process in which main calls each of many functions `pid` times, a millisecond in all."""
    s = live_store.Store(pid, wall_ns=(functions + 1) * MS)
    main = s.node(s.thread(pid), s.function("main", 1, "/a.py"), 1, (functions + 1) * MS)
    for i in range(functions):
        s.node(main, s.function(f"f{i}", i + 2, "/a.py"), pid, MS)
    s.write(folder / f"live-{pid}")
    done = fathom("merge", f"live-{pid}", "-o", f"{pid}.fathom", cwd=folder)
    assert done.returncode == 0, done
    return f"{pid}.fathom"


def peak_bytes(*args, cwd) -> int:
    """What the command had in memory at most."""
    process = subprocess.Popen([FATHOM, *args], cwd=cwd)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


def test_sums_and_memory(tmp_path):
    files = [recording(tmp_path, pid) for pid in (101, 102, 103)]
    many = files * 400
    few = peak_bytes("merge", *files, "-o", "few.fathom", cwd=tmp_path)
    lot = peak_bytes("merge", *many, "-o", "lot.fathom", cwd=tmp_path)
    # All of them in memory would take 28 bytes, parent, function, thread and two numbers, a context.
    assert lot - few < len(many) * FUNCTIONS * 28 / 8, (few, lot)
    report = json.loads(fathom("report", "--json", "-n", "all", "lot.fathom", cwd=tmp_path).stdout)
    calls = {row["name"]: row["calls"] for row in report["functions"]}
    assert len(calls) == FUNCTIONS + 1
    assert calls["main"] == 1200
    assert calls["f17"] == 400 * (101 + 102 + 103)
    assert len(json.loads(fathom("report", "--json", "--processes", "lot.fathom",
                                 cwd=tmp_path).stdout)["processes"]) == 1200


def test_one_that_cannot_be_read(tmp_path):
    """The sentence is about the input, and what was there under the name of the output stays."""
    files = [recording(tmp_path, pid, 3) for pid in (101, 102)]
    (tmp_path / "all.fathom").write_bytes(b"mine")
    (tmp_path / "text").write_text("no recording\n")
    said = fails(4, "merge", *files, "text", "-o", "all.fathom", "--force", cwd=tmp_path)
    assert "text is in no format" in said and "writing" not in said
    said = fails(3, "merge", files[0], "absent", "-o", "all.fathom", "--force", cwd=tmp_path)
    assert "absent does not exist" in said
    assert (tmp_path / "all.fathom").read_bytes() == b"mine"
    said = fails(7, "merge", *files, "-o", "all.fathom", cwd=tmp_path)
    assert "all.fathom exists" in said
