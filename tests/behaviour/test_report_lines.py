"""`fathom report` line by line, on recordings whose numbers were made up by hand."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import pty
import re
import select
import struct
import sys
import types
import unicodedata

import pytest

import live_store
from pstats_tools import FATHOM, fails, fathom, report, table, uncolored

MS, US = 1_000_000, 1_000
CALLS, LINES = 8, 16

# Line numbers are those of the file: the comment is line 1.
SOURCE = '''\
# app
import functools


@functools.wraps
@functools.lru_cache(
    maxsize=None,
)
def work(n,
         m=2):
    """Text at the left edge:
not the end
    """
    total = 0
# a comment at the left edge
    for i in range(n):
        total += part(i)
\tx = 'tab'
        wide = "漢字 and a long line that does not fit into eighty columns, nor ninety"
    return (total,
            n,
)


def part(i):
    return i


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def never():
    pass


class Box:
    a = 1

    def one(self):
        x = 1
        y = 2
        return x

    b = 2
'''


def bucket(ns: int) -> int:
    """As src/record/capture/live.h says: 2n for [2^n, 1.5 * 2^n), 2n + 1 up to 2^(n+1)."""
    octave = ns.bit_length() - 1
    return 2 * octave + (ns >= 1.5 * 2 ** octave)


class LineStore(live_store.Store):
    """A process with lines."""

    def __init__(self, *args, flags=LINES, **options):
        super().__init__(*args, **options)
        self.rows: list[bytes] = []
        self.more_flags = flags

    def mark(self, function: int) -> None:
        self.define(live_store.varint(5) + live_store.varint(function) + live_store.varint(1))

    def line(self, function, line, hits, total_ns, self_ns=None, visits=(), suspended_ns=0) -> None:
        """`visits` are (how many, ns each); the shortest, the longest and the histogram follow."""
        buckets = [0] * 80
        for count, ns in visits:
            buckets[bucket(ns)] += count
        times = [ns for _, ns in visits]
        self.rows.append(struct.pack(
            "<IIQQQQQQII64x80I", function, line, hits, total_ns,
            total_ns if self_ns is None else self_ns, min(times, default=(1 << 64) - 1),
            max(times, default=0), suspended_ns, 0, 0, *buckets))

    def bytes(self) -> bytes:
        out = bytearray(super().bytes())
        at = 0
        for name, code in live_store.header_layout():
            if name == "flags":
                old, = struct.unpack_from("<I", out, at)
                struct.pack_into("<I", out, at, old | self.more_flags)
            at += struct.calcsize("<" + code)
        payload = b"".join(self.rows)
        whole = -(-(64 + len(payload)) // live_store.PAGE) * live_store.PAGE
        chunk = struct.pack("<IIIIIIQ32x", 0x4b4e4843, 6, whole, len(payload), 0, 0,
                            0x7f0000000000 + len(out))
        return bytes(out) + (chunk + payload).ljust(whole, b"\0")


def merge(folder, *stores, name="run.fathom"):
    live = folder / ("live-" + name)
    for store in stores:
        store.write(live)
    done = fathom("merge", live.name, "-o", name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / name


def add_work(store, app, scale=1):
    """work: 10 ms in all. Its lines: 0.5, 1.5, 8 (of which 2 its own) ms; 3 hits of the return."""
    work = store.function("work", 5, str(app))
    store.line(work, 14, 3 * scale, 500 * US * scale, visits=[(3 * scale, 160 * US)])
    store.line(work, 16, 30 * scale, 1500 * US * scale)
    store.line(work, 17, 27 * scale, 8 * MS * scale, 2 * MS * scale,
               visits=[(26 * scale, 100 * US), (1 * scale, 5 * MS)])
    store.line(work, 20, 3 * scale, 0)
    return work


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    (folder / "app.py").write_text(SOURCE)
    return folder


@pytest.fixture(scope="module")
def recording(folder):
    """Lines only, nothing marked. One thread that ran for 20 ms."""
    store = LineStore(100, wall_ns=20 * MS, command="python app.py")
    app = folder / "app.py"
    root = store.thread(100, "MainThread")
    work = add_work(store, app)
    part = store.function("part", 25, str(app))
    store.line(part, 26, 27, 6 * MS)
    store.node(store.node(root, work, 3, 10 * MS), part, 27, 6 * MS)
    return merge(folder, store)


def block(text: str, function: str) -> list[str]:
    """The lines of a function's block, from "Total time" on."""
    blocks = re.split(r"(?=^Total time: )", text, flags=re.M)[1:]
    found = [b for b in blocks if re.search(rf"^Function: {re.escape(function)} at line", b, re.M)]
    assert len(found) == 1, text
    return found[0].rstrip("\n").split("\n")


def numbers(lines: list[str]) -> dict[int, list[str]]:
    """{line: its cells before the source} of a block's table; source columns are cut off by where
    the title stands."""
    title = next(i for i, line in enumerate(lines) if line.startswith("Line #"))
    at = lines[title].index("Line Contents")
    rows = {}
    for line in lines[title + 2:]:
        cells = line[:at].split()
        if line[:6].strip().isdigit():
            rows[int(cells[0])] = cells[1:]
    return rows


def width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_a_block_has_every_line_of_the_function(recording, folder):
    lines = block(report(recording), "work")
    assert lines[:3] == ["Total time: 10.0 ms", f"File: {folder}/app.py", "Function: work at line 5"]
    assert lines[3] == ""
    assert lines[4].split("  ")[0] == "Line #"
    assert lines[5] == "=" * len(lines[4])
    at = lines[4].index("Line Contents")
    shown = [line[at:].rstrip() for line in lines[6:6 + 18]]
    expected = [line.replace("\t", " " * 8) for line in SOURCE.split("\n")[4:22]]
    assert shown == expected  # decorators, the text at the left edge, and the bracket at the end
    assert [int(line[:6]) for line in lines[6:6 + 18]] == list(range(5, 23))


def test_numbers_are_those_of_the_recording(recording):
    lines = block(report(recording), "work")
    # Time is in ms (8 ms is the largest), self too, per hit in µs: 8 ms / 27 = 296.296 µs.
    assert re.split(r"  +", lines[4].strip()) == ["Line #", "Hits", "Time ms", "Self ms",
                                                  "Per Hit µs", "% Time", "Line Contents"]
    rows = numbers(lines)
    assert rows[14] == ["3", "0.500", "0.500", "166.667", "5.0"]
    assert rows[16] == ["30", "1.500", "1.500", "50.000", "15.0"]
    assert rows[17] == ["27", "8.000", "2.000", "296.296", "80.0"]
    assert rows[20] == ["3"]  # no time: blank, not 0
    assert rows[15] == rows[18] == []  # never hit


def test_columns_are_right_aligned(recording):
    lines = block(report(recording), "work")
    title = lines[4]
    ends = [m.end() for m in re.finditer(r"\S+(?: \S+)*(?=  )", title)]
    row = next(line for line in lines if line.startswith("    17"))
    assert [m.end() for m in re.finditer(r"\S+(?=  )", row[:title.index("Line Contents")])] == ends


def test_self_is_only_shown_where_it_differs(recording):
    lines = block(report(recording), "part")
    assert "Self" not in lines[4] and "Suspended" not in lines[4]


@pytest.mark.parametrize("columns", [80, 140])
def test_rows_fit_the_page(recording, columns):
    text = report(recording, "--lines=work", "--width", columns)
    table = text[text.index("Line #"):]
    rows = [line for line in table.split("\n") if line[:6].strip().isdigit()]
    assert len(rows) == 18
    assert max(map(width, rows)) <= columns
    long = next(row for row in rows if row.lstrip().startswith("19"))
    at = next(line for line in table.split("\n")).index("Line Contents")
    whole = '        wide = "漢字 and a long line that does not fit into eighty columns, nor ninety"'
    if columns == 80:
        assert long.endswith("…") and whole.startswith(long[at:-1])
        assert width(long) >= 79  # a wide character may leave one column free
    else:
        assert long[at:] == whole


def test_unmarked_functions_by_time_the_first_ten(folder):
    store = LineStore(110, wall_ns=MS)
    for i in range(12):
        f = store.function(f"f{i}", 1, "/gone/x.py")
        store.line(f, 2, 1, (i + 1) * US)
    idle = store.function("idle", 9, "/gone/x.py")
    store.line(idle, 9, 0, 0)
    recording = merge(folder, store, name="many.fathom")
    names = re.findall(r"^Function: (\S+)", report(recording), re.M)
    assert names == [f"f{i}" for i in range(11, 1, -1)]
    assert "10 of 1" in report(recording).splitlines()[-1]
    assert re.findall(r"^Function: (\S+)", report(recording, "-n", "2"), re.M) == ["f11", "f10"]
    assert len(re.findall(r"^Function:", report(recording, "-n", "all"), re.M)) == 12
    assert re.findall(r"^Function: (\S+)", report(recording, "-r", "f1[01]"), re.M) == ["f11", "f10"]
    assert re.findall(r"^Function: (\S+)", report(recording, "-s", "name", "-n", "3"), re.M) == [
        "f0", "f1", "f10"]
    assert re.findall(r"^Function: (\S+)", report(recording, "--reverse", "-n", "1"),
                      re.M) == ["f0"]


def test_marked_functions_alone_also_if_they_never_ran(folder):
    store = LineStore(120, wall_ns=MS)
    app = folder / "app.py"
    never = store.function("never", 35, str(app))
    part = store.function("part", 25, str(app))
    store.line(part, 26, 5, 5 * US)
    work = add_work(store, app)
    store.mark(never)
    store.mark(part)
    recording = merge(folder, store, name="marked.fathom")
    text = report(recording)
    assert re.findall(r"^Function: (\S+)", text, re.M) == ["part", "never"]
    assert block(text, "never")[0] == "Total time: 0"
    assert numbers(block(text, "never"))[36] == []
    assert re.findall(r"^Function: (\S+)", report(recording, "--lines", "--skip-zero"),
                      re.M) == ["part"]
    assert re.findall(r"^Function: (\S+)", report(recording, "--lines=work"), re.M) == ["work"]
    assert re.findall(r"^Function: (\S+)", report(recording, "--lines=*"), re.M) == [
        "work", "part", "never"]
    assert work


def test_recursion_does_not_make_more_than_the_whole(folder):
    """fib took 10 ms in all. Line 32 was active for 9 ms (the outermost), the others for 4 ms
    within and outside it: together more than 10."""
    store = LineStore(130, wall_ns=20 * MS)
    app = folder / "app.py"
    fib = store.function("fib", 29, str(app))
    outer = store.node(store.thread(130), fib, 1, 10 * MS)
    store.node(outer, fib, 20, 9 * MS)
    store.line(fib, 30, 21, 3 * MS)
    store.line(fib, 31, 11, 1 * MS)
    store.line(fib, 32, 10, 9 * MS, 6 * MS)
    lines = block(report(merge(folder, store, name="fib.fathom")), "fib")
    assert lines[0] == "Total time: 10.0 ms"
    assert [numbers(lines)[n][-1] for n in (30, 31, 32)] == ["30.0", "10.0", "90.0"]


def test_columns_can_be_chosen_and_added(recording):
    lines = block(report(recording, "--lines=work", "--columns", "p50,p99,min,max,program,hits"),
                  "work")
    assert re.split(r"  +", lines[4].strip()) == [
        "Line #", "P50 µs", "P99 ms", "Min µs", "Max ms", "% Program", "Hits", "Line Contents"]
    row = numbers(lines)[17]
    # 26 visits of 100 µs and one of 5 ms: the median is in 100 µs' half octave [98.304, 131.072),
    # the 99th percentile in that of 5 ms, [4.194304, 6.291456), but no more than the longest.
    assert 98.304 <= float(row[0]) < 131.072
    assert 4.194 <= float(row[1]) <= 5
    assert row[2:] == ["100.000", "5.000", "40.0", "27"]  # 8 of 20 ms
    lines = block(report(recording, "--lines=work", "--columns", "+max,+min"), "work")
    assert re.split(r"  +", lines[4].strip())[1:-1] == [
        "Hits", "Time ms", "Self ms", "Per Hit µs", "% Time", "Max ms", "Min µs"]
    assert "there is no column \"nope\"" in fails(2, "report", "--lines", "--columns", "nope",
                                                   recording)


def test_suspended_time_has_a_column_when_there_is_any(folder):
    store = LineStore(140, wall_ns=MS)
    part = store.function("part", 25, str(folder / "app.py"), flags=live_store.GENERATOR)
    store.line(part, 26, 4, 100 * US, suspended_ns=7 * MS)
    lines = block(report(merge(folder, store, name="gen.fathom")), "part")
    assert "Suspended ms" in lines[4]
    assert numbers(lines)[26] == ["4", "100.000", "25.000", "100.0", "7.000"]


@pytest.mark.parametrize("unit, title, total, per_hit", [
    ("s", "Time s", "0.00800", "0.000296"),
    ("ms", "Time ms", "8.000", "0.2963"),
    ("us", "Time µs", "8,000.000", "296.296"),
    ("ns", "Time ns", "8,000,000", "296,296.3"),
])
def test_units(recording, unit, title, total, per_hit):
    lines = block(report(recording, "--lines=work", "--unit", unit), "work")
    row = numbers(lines)[17]
    assert f"  {title}  " in lines[4]
    assert row[1].startswith(total) and float(row[1].replace(",", "")) == float(total.replace(",", ""))
    assert row[3].startswith(per_hit)
    assert len({len(cells[1].partition(".")[2]) for cells in numbers(lines).values()
                if len(cells) > 2}) == 1  # as many digits in every row
    assert "--unit is" in fails(2, "report", "--unit", "days", recording)


def test_hot_lines_of_all_functions(recording):
    text = report(recording, "--hot", "3", "--strip-dirs")
    rows = [re.split(r"  +", line.strip()) for line in text[text.index("Self"):].splitlines()]
    # By self time: part's return (6 ms), the call of it (2 of 8), the loop (1.5); of 20 ms.
    assert rows[0] == ["Self ms", "%", "Time ms", "%", "Hits", "Line", "Line Contents"]
    assert rows[1:4] == [
        ["6.000", "30.0", "6.000", "30.0", "27", "app.py:26", "return i", "part"],
        ["2.000", "10.0", "8.000", "40.0", "27", "app.py:17", "total += part(i)", "work"],
        ["1.500", "7.5", "1.500", "7.5", "30", "app.py:16", "for i in range(n):", "work"]]
    assert text.endswith("\n3 of 5 lines that ran\n")
    by_time = report(recording, "--hot", "1", "--sort", "time", "--strip-dirs")
    assert "app.py:17" in by_time and "app.py:26" not in by_time
    by_hits = report(recording, "--hot", "1", "--sort", "hits", "--strip-dirs")
    assert "app.py:16" in by_hits
    only = report(recording, "--hot", "all", "--lines=work")
    assert "part(i)" in only and "return i" not in only


def test_summarize(recording):
    text = report(recording, "--lines", "--summarize", "--strip-dirs")
    rows = [re.split(r"  +", line.strip()) for line in text[text.index("Time ms"):].splitlines()]
    assert rows == [["Time ms", "% Program", "Hits", "Function"],
                    ["10.000", "50.0", "63", "work", "app.py:5"],
                    ["6.000", "30.0", "27", "part", "app.py:25"]]


def test_annotate_is_the_whole_file(recording, folder):
    text = report(recording, "--annotate")
    fields = [line.split("|", 5) for line in text.splitlines() if re.match(r" *\d+\|", line)]
    source = [line.replace("\t", " " * 8) for line in SOURCE.splitlines()]
    assert [f[5] for f in fields] == source
    assert [int(f[0]) for f in fields] == list(range(1, len(source) + 1))
    # Without callees, in seconds: line 17 had 2 ms of its own in 27 hits, a tenth of 20 ms.
    assert int(fields[16][1]) == 27 and float(fields[16][2]) == 0.002
    assert float(fields[16][3]) == pytest.approx(0.002 / 27, rel=1e-5)
    assert fields[16][4] == " 10.00%"
    assert int(fields[0][1]) == 0 and float(fields[0][2]) == 0
    assert f"File: {folder}/app.py\nFile duration: 0.01s (50.00%)\n" in text  # 4 + 6 ms of 20


def test_json(recording, folder):
    data = table(recording)
    assert data["program_ns"] == 20 * MS
    work, part = data["functions"]
    assert (work["qualname"], work["file"], work["line"]) == ("work", f"{folder}/app.py", 5)
    assert (work["total_ns"], work["self_ns"], work["hits"]) == (10 * MS, 4 * MS, 63)
    assert work["marked"] is False
    assert [row["line"] for row in work["lines"]] == [14, 16, 17, 20]
    row = work["lines"][2]
    assert (row["hits"], row["total_ns"], row["self_ns"]) == (27, 8 * MS, 2 * MS)
    assert (row["min_ns"], row["max_ns"], row["suspended_ns"]) == (100 * US, 5 * MS, 0)
    assert row["source"] == "        total += part(i)"
    assert part["total_ns"] == 6 * MS
    hot = table(recording, "--hot", "1")["lines"]
    assert [(h["line"], h["self_ns"], h["function"]["name"]) for h in hot] == [(26, 6 * MS, "part")]
    sources = table(recording, "--annotate")["sources"]
    assert [(s["file"], s["self_ns"]) for s in sources] == [(f"{folder}/app.py", 10 * MS)]
    assert [(x["line"], x["hits"]) for x in sources[0]["lines"]] == [
        (14, 3), (16, 30), (17, 27), (20, 3), (26, 27)]
    assert "lines" not in table(recording, "--summarize")["functions"][0]


def test_csv(recording):
    rows = list(csv.DictReader(io.StringIO(report(recording, "--csv", "--lines=work"))))
    assert [int(row["line"]) for row in rows] == [14, 16, 17, 20]
    assert (rows[2]["function"], rows[2]["first_line"], rows[2]["hits"]) == ("work", "5", "27")
    assert (float(rows[2]["time_s"]), float(rows[2]["self_s"])) == (0.008, 0.002)
    assert float(rows[2]["percent"]) == 80
    assert rows[2]["source"] == "        total += part(i)"
    rows = list(csv.DictReader(io.StringIO(report(recording, "--csv", "--annotate"))))
    assert [(int(r["line"]), float(r["self_s"])) for r in rows][-1] == (26, 0.006)
    rows = list(csv.DictReader(io.StringIO(report(recording, "--csv", "--summarize"))))
    assert [(r["function"], float(r["time_s"])) for r in rows] == [("work", 0.01), ("part", 0.006)]


def test_processes_are_added_up_or_shown_alone(folder):
    stores = [LineStore(150, wall_ns=20 * MS), LineStore(151, parent=150, wall_ns=20 * MS)]
    add_work(stores[0], folder / "app.py")
    add_work(stores[1], folder / "app.py", scale=2)
    recording = merge(folder, *stores, name="two.fathom")
    rows = table(recording)["functions"][0]["lines"]
    assert (rows[2]["hits"], rows[2]["total_ns"]) == (27 * 3, 24 * MS)
    rows = table(recording, "--process", "151")["functions"][0]["lines"]
    assert (rows[2]["hits"], rows[2]["total_ns"]) == (54, 16 * MS)


def test_a_class_and_a_module_leave_out_what_is_not_theirs(folder):
    store = LineStore(160, wall_ns=MS)
    box = store.function("Box", 39, str(folder / "app.py"))
    for line in (39, 40, 42, 47):
        store.line(box, line, 1, US)
    module = store.function("<module>", 1, str(folder / "app.py"))
    for line in (2, 39):
        store.line(module, line, 1, US)
    text = report(merge(folder, store, name="class.fathom"))
    lines = block(text, "Box")
    assert list(numbers(lines)) == [39, 40, 41, 42, 47]
    assert sum("4 lines" in line for line in lines) == 1  # 43 to 46
    lines = block(text, "<module>")
    assert list(numbers(lines)) == [1, 2, 39]
    assert [re.search(r"(\d+) lines", x).group(1) for x in lines if "⋮" in x] == ["36", "8"]


def test_functions_stay_the_default_where_calls_were_recorded(folder):
    store = LineStore(170, wall_ns=20 * MS, flags=CALLS | LINES)
    work = add_work(store, folder / "app.py")
    other = store.function("other", 1, "/gone/x.py")
    root = store.thread(170)
    node = store.node(root, other, 1, 16 * MS)
    store.node(node, work, 3, 10 * MS)
    recording = merge(folder, store, name="both.fathom")
    assert [f["qualname"] for f in table(recording)["functions"]] == ["work", "other"]
    assert "63 line hits" in report(recording)
    # Of the program is of all time in the tree, 16 ms, not of the thread's 20.
    rows = numbers(block(report(recording, "--lines", "--columns", "program"), "work"))
    assert rows[17] == ["50.0"]


def test_recordings_without_lines_say_so(folder):
    store = live_store.Store(180)
    store.node(store.thread(180), store.function("f", 1, "/gone/x.py"), 1, MS)
    store.write(folder / "plain")
    assert fathom("merge", "plain", "-o", "plain.fathom", cwd=folder).returncode == 0
    for option in (["--lines"], ["--hot", "3"], ["--annotate"], ["--summarize"], ["--lines=f"]):
        text = fails(12, "report", *option, folder / "plain.fathom")
        assert "plain.fathom holds no lines" in text


def test_what_does_not_go_with_lines(recording):
    assert "no function \"nope\" with lines" in fails(12, "report", "--lines=nope", recording)
    assert "--thread" in fails(2, "report", "--lines", "--thread", "100", recording)
    assert "--fold" in fails(2, "report", "--lines", "--fold", "x", recording)
    assert "--unit" in fails(2, "report", "--tree", "--unit", "s", recording)
    assert "pstats has no such" in fails(2, "report", "--lines", "--pstats", recording)


def test_source_that_changed_or_is_gone(folder):
    gone = folder / "gone.py"
    gone.write_text("def f():\n    return 1\n")
    store = LineStore(190, wall_ns=MS)
    f = store.function("f", 1, str(gone))
    store.line(f, 2, 5, 5 * US)
    # What the file was like when it was first seen: of another size.
    store.define(live_store.varint(4) + live_store.varint(1) + live_store.varint(7)
                 + live_store.text(str(gone)))
    lines = block(report(merge(folder, store, name="changed.fathom")), "f")
    assert lines[3] == "No source is shown: the file changed while the program ran"
    assert numbers(lines) == {2: ["5", "5.000", "1.000", "100.0"]}


def test_bytes_that_are_no_text(folder):
    odd, latin = folder / "odd.py", folder / "latin.py"
    odd.write_bytes(b"def f():\n    x = '\xff\x1b[31m\xc2\x9b'\r\n    return '\xe6\xbc\xa2'\n")
    latin.write_bytes(b"# -*- coding: latin-1 -*-\ndef g():\n    return 'caf\xe9'\n")
    store = LineStore(200, wall_ns=MS)
    store.line(store.function("f", 1, str(odd)), 2, 1, US)
    store.line(store.function("g", 2, str(latin)), 3, 1, US)
    recording = merge(folder, store, name="odd.fathom")
    done = fathom("report", recording)
    text = done.stdout.decode()  # whatever was in the file, this is UTF-8
    assert r"x = '\xff\x1b[31m\x9b'" "\n" in text
    assert "return '漢'\n" in text and "return 'café'\n" in text
    data = json.loads(fathom("report", "--json", recording).stdout)
    assert data["functions"][1]["lines"][0]["source"] == "    return 'café'"


class LineStats:
    """Stands in for line_profiler's class of that name."""

    def __init__(self, timings, unit):
        self.timings, self.unit = timings, unit


def write_lprof(path, timings, unit):
    """A file as line_profiler writes it, without line_profiler."""
    module = "line_profiler.line_profiler"
    names = [module.split(".")[0], module]
    kept = {name: sys.modules.get(name) for name in names}
    LineStats.__module__ = module
    try:
        for name in names:
            sys.modules[name] = types.ModuleType(name)
        sys.modules[module].LineStats = LineStats
        path.write_bytes(pickle.dumps(LineStats(timings, unit)))
    finally:
        LineStats.__module__ = __name__
        for name in names:
            del sys.modules[name]
            if kept[name]:
                sys.modules[name] = kept[name]
    return path


def test_lprof_shows_its_lines(folder):
    app = str(folder / "app.py")
    path = write_lprof(folder / "a.lprof", {
        (app, 5, "work"): [(14, 2, 10), (16, 12, 40), (17, 10, 150)],
        (app, 29, "fib"): [],
        ("/gone/x.py", 3, "lost"): [(4, 1, 5)]}, 1e-6)
    text = report(path)
    assert re.findall(r"^Function: (\S+)", text, re.M)[:2] == ["work", "lost"]
    lines = block(text, "work")
    assert lines[0] == "Total time: 200 µs"
    assert re.split(r"  +", lines[4].strip())[1:-1] == ["Hits", "Time µs", "Per Hit µs", "% Time"]
    rows = numbers(lines)
    assert rows[14] == ["2", "10.000", "5.000", "5.0"]
    assert rows[16] == ["12", "40.000", "3.333", "20.0"]
    assert rows[17] == ["10", "150.000", "15.000", "75.0"]
    assert "total += part(i)" in "\n".join(lines)
    assert "No source is shown" in block(text, "lost")[3]
    row = table(path)["functions"][0]["lines"][0]
    assert row == {"line": 14, "hits": 2, "total_ns": 10_000, "source": "    total = 0"}
    hot = report(path, "--hot", "1", "--strip-dirs")
    assert re.search(r"^ *150\.000 +73\.2 +10 +app\.py:17 ", hot, re.M)  # 150 of 205 µs


def on_a_terminal(*args, columns=100) -> str:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm"
        os.execv("/bin/sh", ["sh", "-c", f'stty cols {columns}; exec "$@"', "sh", FATHOM,
                             *map(str, args)])
    out = b""
    while select.select([fd], [], [], 60)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    assert os.waitpid(pid, 0)[1] == 0
    return out.decode().replace("\r\n", "\n")


def test_on_a_terminal_the_hottest_line_is_warm(recording):
    text = on_a_terminal("report", recording, "--lines=work")
    hot = next(line for line in text.splitlines() if "part(i)" in line)
    cold = next(line for line in text.splitlines() if "total = 0" in line)
    assert "\x1b[1;31m" in hot and "\x1b[1;31m" not in cold
    assert max(map(width, uncolored(text).splitlines())) <= 100
    plain = report(recording, "--lines=work", "--width", "100")
    assert uncolored(text) == plain


@pytest.mark.parametrize("options, functions, lines", [
    (["--lines"], False, True), (["--lines", "--calls"], True, True), (["--calls"], True, False)])
def test_the_summary_of_a_run(python, tmp_path, options, functions, lines):
    """With lines alone the hottest lines, with calls too both tables."""
    (tmp_path / "app.py").write_text("def f():\n    return sum(range(1000))\n\n\nf()\n")
    done = fathom("run", *options, "-o", "x.fathom", "--", python, "app.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stderr.decode()
    assert bool(re.search(r"^ *calls +self ", text, re.M)) == functions
    assert bool(re.search(r"^ *(Self|Time) .* Line Contents$", text, re.M)) == lines
    assert bool(re.search(r" 1 +app\.py:2 +return sum\(range\(1000\)\) +f$", text, re.M)) == lines
