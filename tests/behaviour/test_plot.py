"""`fathom plot`: pictures of memory over time, by files whose curves are known."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest

from launch import fathom

SVG = "{http://www.w3.org/2000/svg}"


def dat(path, curve, children=(), marks=(), command="app.py"):
    lines = [f"CMDLINE {command}"]
    lines += [f"MEM {mib:.6f} {1700000000 + at:.4f}" for at, mib in curve]
    lines += [f"CHLD {pid} {mib:.6f} {1700000000 + at:.4f}" for pid, at, mib in children]
    lines += [f"FUNC {name} {y:.4f} {1700000000 + x:.4f} {y2:.4f} {1700000000 + x2:.4f} {level}"
              for name, x, y, x2, y2, level in marks]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def plot(*words, cwd=None):
    done = fathom("plot", *words, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def draw(tmp_path, *words):
    """The texts and the lines of an SVG: [(colour, dashes, [(x, y)])]."""
    plot("-f", "-o", str(tmp_path / "x.svg"), *words)
    root = ET.parse(tmp_path / "x.svg").getroot()
    lines = [(e.get("stroke"), e.get("stroke-dasharray"),
              [tuple(map(float, pair.split(","))) for pair in e.get("points").split()])
             for e in root.iter(SVG + "polyline")]
    return [e.text for e in root.iter(SVG + "text")], lines


def test_slopes(tmp_path):
    """2 MiB/s upwards, then 5 downwards; the middle of both by least squares, worked out by hand: of
    (0, 10), (1, 12), (2, 14), (3, 9), (4, 4) it is -15/10."""
    name = dat(tmp_path / "a.dat", [(0, 10), (1, 12), (2, 14), (3, 9), (4, 4)])
    assert "slope 2.00000 MiB/s" in plot("-s", "-w", "0,2", name)
    assert "slope -5.00000 MiB/s" in plot("-s", "-w", "2,4", name)
    assert "slope -1.50000 MiB/s" in plot("-s", name)
    assert "slope" not in plot(name)


def test_the_curve_is_where_it_belongs(tmp_path):
    """From the corner of one axis to the other: a curve from 0 s and 0 to 10 s and 100 MiB."""
    name = dat(tmp_path / "a.dat", [(0, 0), (5, 50), (10, 100)])
    texts, lines = draw(tmp_path, name)
    assert "app.py" in texts and "resident" in texts and "peak 100 MiB" in texts
    assert [t for t in texts if re.fullmatch(r"\d+ MiB|0", t)] == [
        "0", "20 MiB", "40 MiB", "60 MiB", "80 MiB", "100 MiB", "120 MiB"]
    assert {"0 s", "5 s", "10 s"} <= set(texts)
    curve = next(points for _, dash, points in lines if len(points) == 3 and not dash)
    (x0, y0), (x1, y1), (x2, y2) = curve
    assert x0 < x1 < x2 and y0 > y1 > y2
    assert abs((x0 + x2) / 2 - x1) < .2 and abs((y0 + y2) / 2 - y1) < .2
    scale = {points[0][1] for _, _, points in lines
             if len(points) == 2 and points[0][1] == points[1][1] and points[0][0] < points[1][0]}
    assert y0 in scale  # the line of 0


def test_children_apart_and_summed(tmp_path):
    name = dat(tmp_path / "a.dat", [(0, 10), (1, 10), (2, 10)],
               [(7, 0.5, 5), (7, 1.5, 5), (8, 1, 20), (8, 2, 20)])
    apart = plot(name)
    assert re.findall(r"^⠤⠤ (.*) at", apart, re.M) == [
        "resident, peak 10.0 MiB", "process 8, peak 20.0 MiB", "process 7, peak 5.00 MiB"]
    # at 1 s there are 10, 5 and 20
    assert re.findall(r"^⠤⠤ (.*)", plot("--children", "sum", name), re.M) == [
        "resident, all processes, peak 35.0 MiB at 1.000 s"]
    assert re.findall(r"^⠤⠤ (.*) at", plot("-c", name), re.M) == ["resident, peak 10.0 MiB"]


def test_several_runs(tmp_path):
    one = dat(tmp_path / "one.dat", [(0, 10), (1, 12)])
    two = dat(tmp_path / "two.dat", [(100, 20), (103, 30)])  # later: both begin at 0 s
    texts, lines = draw(tmp_path, one, two)
    assert "one.dat: resident" in texts and "two.dat: resident" in texts
    curves = [(colour, points) for colour, dash, points in lines
              if not dash and len(points) == 2 and points[0][0] == lines[2][2][0][0] and
              colour in ("#2f7ed8", "#e67e22")]
    assert {colour for colour, _ in curves} >= {"#2f7ed8", "#e67e22"}


def test_merged_runs(tmp_path):
    """Two runs in one recording are two curves, as from two files."""
    dat(tmp_path / "one.dat", [(0, 10), (1, 12)], [(7, 1, 30)])
    dat(tmp_path / "two.dat", [(100, 20), (103, 35)])
    assert fathom("merge", "one.dat", "two.dat", "-o", "x.fathom", cwd=tmp_path).returncode == 0
    out = plot("--children", "sum", "x.fathom", cwd=tmp_path)
    assert re.findall(r"^⠤⠤ (.*)", out, re.M) == [
        "run 1: resident, all processes, peak 42.0 MiB at 1.000 s", "run 2: resident, peak 35.0 MiB at 3.000 s"]


def test_calls_are_marked(tmp_path):
    name = dat(tmp_path / "a.dat", [(0, 10), (1, 30), (2, 10)],
               marks=[("app.main", 0.1, 10, 1.9, 10, 0), ("app.work", .5, 20, 1, 30, 1)])
    texts, _ = draw(tmp_path, name)
    assert "app.main 1.800 s" in texts and "app.work 0.500 s" in texts
    assert "[ app.work 0.500 s, from 0.500 s: 20.0 MiB to 30.0 MiB ]" in plot(name)
    texts, _ = draw(tmp_path, "-n", name)
    assert not any("app.work" in text for text in texts)


def test_window(tmp_path):
    name = dat(tmp_path / "a.dat", [(i / 10, 10 + i % 7) for i in range(100)])
    out = plot("-w", "2,5", name)
    assert "2.000 s" in out and "5.000 s" in out
    done = fathom("plot", "-w", "50,60", name)
    assert done.returncode == 12 and "nothing was looked at in that window" in done.stderr


def test_names_are_text(tmp_path):
    name = dat(tmp_path / "a.dat", [(0, 1), (1, 2)], command="<b>&'\"\x1b[31m\u202e",
               marks=[("<script>&amp;", 0, 1, 1, 2, 0)])
    texts, _ = draw(tmp_path, name)  # which parses it
    assert "<b>&'\"\\x1b[31m\\u202e" in texts and "<script>&amp; 1.000 s" in texts
    assert "\x1b" not in plot(name)


def test_long_commands_are_cut(tmp_path):
    name = dat(tmp_path / "a.dat", [(0, 1), (1, 2)], command="python -c " + "é" * 1000)
    assert plot(name).splitlines()[0] == "python -c " + "é" * 45 + "…"
    assert plot("-t", "x" * 300, name).splitlines()[0] == "x" * 300


def test_pixels(tmp_path):
    """A PNG of twice as many pixels as points; its field is not empty."""
    name = dat(tmp_path / "a.dat", [(0, 10), (1, 30), (2, 10)])
    done = fathom("plot", "-o", "x.png", "--size", "400x300", name, cwd=tmp_path)
    if done.returncode == 12 and "Cairo is not here" in done.stderr:
        pytest.skip(done.stderr)
    data = (tmp_path / "x.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    assert struct.unpack(">II", data[16:24]) == (800, 600)
    at, pixels = 8, b""
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        if data[at + 4:at + 8] == b"IDAT":
            pixels += data[at + 8:at + 8 + length]
        at += length + 12
    assert len(set(zlib.decompress(pixels))) > 20
    plot("-o", "x.pdf", name, cwd=tmp_path)
    assert (tmp_path / "x.pdf").read_bytes()[:5] == b"%PDF-"


def test_text(tmp_path):
    """A rising curve in dots: in each column one higher, or as high."""
    name = dat(tmp_path / "a.dat", [(0, 0), (10, 100)])
    plot("-o", "x.txt", "--size", "40x10", name, cwd=tmp_path)
    rows = (tmp_path / "x.txt").read_text().splitlines()
    assert rows[0] == "app.py" and rows[1].startswith("⠤⠤ resident, peak 100 MiB at 10.000 s")
    field = [row[10:].ljust(30) for row in rows[2:12]]
    tops = [min(y for y in range(10) if field[y][x] != " ") for x in range(30)]
    assert tops == sorted(tops, reverse=True) and tops[0] == 9 and tops[-1] == 0
    assert rows[12].split() == ["0.000", "s", "10.000", "s"]


@pytest.mark.parametrize("words, status, sentence", [
    (["missing.dat"], 3, "missing.dat does not exist"),
    ([], 2, "name at least one recording"),
    (["-o", "x.jpg", "a.dat"], 2, "a plot is an svg, png, pdf or txt"),
    (["-w", "3", "a.dat"], 2, "-w needs two times"),
    (["-w", "3,1", "a.dat"], 2, "-w needs two times"),
    (["--size", "0x0", "a.dat"], 2, "--size needs width and height"),
    (["--children", "some", "a.dat"], 2, "--children is each, sum or none"),
    (["-o", "taken.svg", "a.dat"], 7, "taken.svg exists"),
    (["empty.dat"], 12, "no memory over time"),
])
def test_errors(words, status, sentence, tmp_path):
    dat(tmp_path / "a.dat", [(0, 1), (1, 2)])
    dat(tmp_path / "empty.dat", [])
    (tmp_path / "taken.svg").write_text("mine")
    done = fathom("plot", *words, cwd=tmp_path)
    assert done.returncode == status and sentence in done.stderr, done
    assert (tmp_path / "taken.svg").read_text() == "mine"
