"""memory_profiler's mprofile_*.dat: read, written, and read back equal."""

from __future__ import annotations

import pytest

from launch import fathom

DAT = """CMDLINE /usr/bin/python3 app.py --x
MEM 10.000000 1700000000.0000
MEM 12.345678 1700000000.1001
CHLD 4711 3.500000 1700000000.1002
MEM 60.000001 1700000000.2003
CHLD 4711 3.503906 1700000000.2004
MEM 0.003906 1700000000.3005
CHLD 4712 900000.123456 1700000000.3006
FUNC app.work 12.3457 1700000000.1000 60.0000 1700000000.2500 1
FUNC app.main 10.0000 1700000000.0500 12.3457 1700000000.2900 0
FUNC older.file 10.0000 1700000000.0500 12.3457 1700000000.2900
"""


def converted(folder, *steps):
    """The bytes after converting in.dat to each name in turn."""
    before = "in.dat"
    for name in steps:
        done = fathom("convert", before, "-o", name, cwd=folder)
        assert (done.returncode, done.stderr) == (0, ""), done
        before = name
    return (folder / before).read_text()


@pytest.mark.parametrize("steps", [("out.dat",), ("x.fathom", "out.dat"), ("mprofile_1",)])
def test_read_back_equal(steps, tmp_path):
    (tmp_path / "in.dat").write_text(DAT)
    assert converted(tmp_path, *steps) == DAT


def test_calls_may_come_first(tmp_path):
    """So it is when the program ends before mprof has written what it measured."""
    lines = DAT.splitlines(keepends=True)
    (tmp_path / "in.dat").write_text("".join(lines[-3:] + lines[:-3]))
    assert converted(tmp_path, "out.dat") == DAT


def test_unknown_lines_are_passed_over(tmp_path):
    (tmp_path / "in.dat").write_text(DAT + "NEWS 1 2 3\n")
    assert converted(tmp_path, "out.dat") == DAT


def test_merged_runs(tmp_path):
    (tmp_path / "in.dat").write_text(DAT)
    assert fathom("convert", "in.dat", "-o", "x.fathom", cwd=tmp_path).returncode == 0
    done = fathom("merge", "x.fathom", "in.dat", "-o", "both.fathom", cwd=tmp_path)
    assert done.returncode == 0, done
    done = fathom("convert", "both.fathom", "-o", "both.dat", cwd=tmp_path)
    text = (tmp_path / "both.dat").read_text()
    assert done.returncode == 0 and text.count("CHLD 4711") == 4 and text.count("FUNC") == 6


def test_cut_off(tmp_path):
    """mprof was killed while it wrote a line: what is before it counts."""
    (tmp_path / "in.dat").write_text(DAT[:DAT.index("CHLD 4712") + 12])
    done = fathom("convert", "in.dat", "-o", "out.dat", cwd=tmp_path)
    assert done.returncode == 0
    assert "the last line was cut off" in done.stderr
    assert (tmp_path / "out.dat").read_text() == DAT[:DAT.index("CHLD 4712")]


@pytest.mark.parametrize("line", ["MEM x 1700000000.0", "MEM 1e300 1700000000.0", "MEM 1.0", "CHLD a 1.0 2.0",
                                  "MEM nan 1700000000.0", "MEM 1.0 -5", "FUNC f 1.0 2.0 3.0"])
def test_damaged(line, tmp_path):
    (tmp_path / "in.dat").write_text(f"CMDLINE x\nMEM 1.0 1700000000.0\n{line}\nMEM 1.0 1700000000.0\n")
    done = fathom("convert", "in.dat", "-o", "out.dat", cwd=tmp_path)
    assert done.returncode == 5
    assert done.stderr == "fathom convert: reading in.dat: a line is not as mprof writes it\n"


def test_a_recording_without_a_curve(tmp_path):
    done = fathom("run", "-q", "--calls", "-o", "x.fathom", "python3", "-c", "pass", cwd=tmp_path)
    assert done.returncode == 0
    done = fathom("convert", "x.fathom", "-o", "x.dat", cwd=tmp_path)
    assert done.returncode == 12 and "no memory over time" in done.stderr
    assert not (tmp_path / "x.dat").exists()
