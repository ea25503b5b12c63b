"""`fathom report` on recordings whose numbers were made up by hand, so every answer is known."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import select

import pytest

import live_store
from pstats_tools import FATHOM, fails, fathom, read, report, table, uncolored, write

MS = 1_000_000

# One function, called recursively, a builtin, a generator, two functions that look alike:
#
#     main              1 call   100 ms
#       work            4 calls   60 ms
#         work          6 calls   30 ms   (recursion)
#           sum        10 calls   10 ms   (builtin)
#       gen             1 call    20 ms, 8 resumes, suspended 5 ms
#     other (thread 2)  2 calls   40 ms
#       work            1 call     5 ms
APP = "/home/me/app.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    store = live_store.Store(100, wall_ns=200 * MS, command="python app.py -v",
                             costs=(1000, 500, 2000), own_ns=64_000)
    main = store.function("main", 1, APP)
    work = store.function("work", 10, APP, "Worker.work")
    total = store.function("<built-in method builtins.sum>", flags=live_store.C)
    gen = store.function("gen", 30, APP, flags=live_store.GENERATOR)
    other = store.function("other", 5, "/home/you/app.py")
    root = store.thread(100, "MainThread", cpu_ns=90 * MS)
    node = store.node(root, main, 1, 100 * MS, 100 * MS, 100 * MS)
    outer = store.node(node, work, 4, 60 * MS, 10 * MS, 20 * MS)
    inner = store.node(outer, work, 6, 30 * MS, 4 * MS, 6 * MS)
    store.node(inner, total, 10, 10 * MS, MS, MS)
    store.node(node, gen, 1, 20 * MS, 2 * MS, 3 * MS, resumes=8, suspended_ns=5 * MS)
    second = store.thread(101, "second", cpu_ns=10 * MS)
    node = store.node(second, other, 2, 40 * MS, 20 * MS, 20 * MS)
    store.node(node, work, 1, 5 * MS, 5 * MS, 5 * MS)
    store.write(folder / "live")
    child = live_store.Store(200, parent=100, wall_ns=50 * MS, command="python child.py",
                             version="3.12.1", lost=(7,))
    run = child.function("run", 3, "/home/me/child.py")
    child.node(child.thread(200), run, 5, 50 * MS)
    child.write(folder / "live")
    (folder / "live" / "300.0.unprofiled").write_text(
        "exe=/opt/python2\nversion=2.7.18\ncommand=python2 old.py\nreason=no agent for Python 2.7\n")
    done = fathom("merge", "live", "-o", "run.fathom", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run.fathom"


def rows(recording, *args) -> dict:
    return {r["qualname"]: r for r in table(recording, *args)["functions"]}


def test_numbers(recording):
    """By hand: self is total without callees, recursion counts once, resumes count as calls."""
    found = rows(recording)
    expected = {  # calls, primitive, self, total in ms
        "main": (1, 1, 20, 100),
        "Worker.work": (11, 5, 55, 65),
        "<built-in method builtins.sum>": (10, 10, 10, 10),
        "gen": (9, 9, 20, 20),
        "other": (2, 2, 35, 40),
        "run": (5, 5, 50, 50),
    }
    assert {name: (r["calls"], r["primitive_calls"], r["self_ns"] / MS, r["total_ns"] / MS)
            for name, r in found.items()} == expected
    assert (found["gen"]["resumes"], found["gen"]["suspended_ns"]) == (8, 5 * MS)
    assert (found["Worker.work"]["min_ns"], found["Worker.work"]["max_ns"]) == (4 * MS, 20 * MS)


def test_header(recording):
    lines = report(recording).splitlines()
    assert lines[0] == "python app.py -v"
    # 38 calls: 1 + 11 + 10 + 9 + 2 + 5.
    assert lines[1] == ("Python 3.13.0, 3.12.1, 2.7.18 · 200 ms wall · 3 processes · 3 threads"
                        " · 38 calls")
    # 1 + 4 + 6 + 1 + 2 + 1 = 15 Python calls at 1 µs, 10 C calls at 0.5 µs, 8 resumes at 2 µs:
    # 36 µs, and 64 µs of the agent's own, of 250 ms.
    assert lines[2] == "Fathom added about 100 µs (<0.1 %)"
    notes = [line for line in lines if line.startswith(("lost", "unprofiled", "recovered"))]
    assert notes[0].startswith("lost: process 200: 7 ")
    assert "unprofiled: process 300: no agent for Python 2.7" in notes
    assert any(line.startswith("recovered: ") for line in notes)


def test_what_was_added_is_a_range_where_instructions_were_slower(tmp_path):
    """10,000 calls at 1 µs and 2 ms beside are 12 ms. Of 72 ms on a processor 60 are left; if all were
    instructions that took half as long again, a third was added: 32 ms. Of 132 ms: 10 % and 32 %."""
    store = live_store.Store(100, wall_ns=132 * MS, version="3.11.9", costs=(1000, 0, 0), own_ns=2 * MS,
                             slow_permille=500)
    store.node(store.thread(100, cpu_ns=72 * MS), store.function("main", 1, APP), 10_000, 100 * MS)
    store.write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "run.fathom", cwd=tmp_path).returncode == 0
    path = tmp_path / "run.fathom"
    assert report(path).splitlines()[2] == "Fathom added about 12.0 ms to 32.0 ms (10.0 to 32.0 %)"
    data = table(path)
    assert (data["added_least_ns"], data["added_ns"], data["added_most_ns"]) == (
        12 * MS, 22 * MS, 32 * MS)


def cells(text: str, title: str) -> list[list[str]]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if title in line)
    found = []
    for line in lines[start + 1:]:
        if not line.strip():
            break
        found.append(re.split(r"\s{2,}", line.strip()))
    return found


def test_table(recording):
    # All self time is 20 + 55 + 10 + 20 + 35 + 50 = 190 ms.
    assert cells(report(recording), "per call") == [
        ["11/5", "55.0 ms", "28.9", "65.0 ms", "34.2", "13.0 ms", "Worker.work", f"{APP}:10"],
        ["5", "50.0 ms", "26.3", "50.0 ms", "26.3", "10.0 ms", "run", "/home/me/child.py:3"],
        ["2", "35.0 ms", "18.4", "40.0 ms", "21.1", "20.0 ms", "other", "/home/you/app.py:5"],
        ["1", "20.0 ms", "10.5", "100 ms", "52.6", "100 ms", "main", f"{APP}:1"],
        ["9", "20.0 ms", "10.5", "20.0 ms", "10.5", "2.22 ms", "8", "5.00 ms", "gen", f"{APP}:30"],
        ["10", "10.0 ms", "5.3", "10.0 ms", "5.3", "1.00 ms", "builtins.sum", "built-in"],
    ]


def test_columns_for_generators_only_when_needed(recording):
    assert "suspended" in report(recording)
    assert "suspended" not in report(recording, "-r", "work")


@pytest.mark.parametrize("key, first", [
    ("self", "Worker.work"), ("total", "main"), ("cumulative", "main"), ("calls", "Worker.work"),
    ("pcalls", "<built-in method builtins.sum>"), ("percall", "main"), ("max", "main"),
    ("min", "main"), ("resumes", "gen"), ("suspended", "gen"), ("tota", "main"), ("su", "gen"),
    ("line", "<built-in method builtins.sum>"), ("module", "main"), ("name", "<built-in method"
                                                                           " builtins.sum>"),
])
def test_sort(recording, key, first):
    assert list(rows(recording, "--sort", key))[0] == first


def test_sort_keys_together(recording):
    expected = list(rows(recording, "-s", "module,line"))
    assert expected == ["main", "Worker.work", "gen", "run", "other",
                        "<built-in method builtins.sum>"]
    assert list(rows(recording, "-s", "module", "-s", "line")) == expected
    assert list(rows(recording, "-s", "module,line", "--reverse")) == expected[::-1]


def test_limits(recording):
    assert len(rows(recording, "-n", "2")) == 2
    assert len(rows(recording, "-n", "all")) == 6
    assert list(rows(recording, "-r", "work|gen", "-n", "1")) == ["Worker.work"]
    assert list(rows(recording, "-n", "1", "-r", "gen")) == []
    assert len(rows(recording, "-r", "0.5")) == 3
    assert list(rows(recording, "-r", r"^Worker\.")) == ["Worker.work"]  # the qualified name


def test_twenty_rows_by_default(tmp_path):
    write(tmp_path / "a.prof", {("f.py", i, f"f{i}"): (1, 1, i / 8, i / 8, {}) for i in range(1, 31)})
    text = report("a.prof", cwd=tmp_path)
    assert len(cells(text, "per call")) == 20
    assert text.splitlines()[-1] == "20 of 30 functions"
    assert len(table("a.prof", cwd=tmp_path)["functions"]) == 30


def test_callers(recording):
    data = rows(recording, "--callers")
    callers = {(c["qualname"], c["calls"], c["primitive_calls"], c["self_ns"] / MS,
                c["total_ns"] / MS) for c in data["Worker.work"]["callers"]}
    assert callers == {("main", 4, 4, 30, 60), ("Worker.work", 6, 6, 20, 30), ("other", 1, 1, 5, 5)}
    assert data["main"]["callers"] == []
    assert [c["qualname"] for c in rows(recording, "--callers", "-s", "calls")["Worker.work"]
            ["callers"]] == ["Worker.work", "main", "other"]


def test_callees(recording):
    data = rows(recording, "--callees")
    assert [(c["qualname"], c["total_ns"] / MS) for c in data["main"]["callees"]] == [
        ("Worker.work", 60), ("gen", 20)]


def test_callers_of_one_function(recording):
    text = report(recording, "--callers=Worker.work", "--edges", "1")
    assert cells(text, "its callers") == [
        ["11/5", "55.0 ms", "65.0 ms", "Worker.work", f"{APP}:10"],
        ["4", "30.0 ms", "60.0 ms", "92.3", "← main", f"{APP}:1"],
        ["7", "25.0 ms", "2 more"],
    ]
    assert "no function" in fails(12, "report", recording, "--callers=nothing")


def test_tree(recording):
    lines = report(recording, "--tree", "--process", "100").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("total"))
    # All of it is 140 ms.
    assert [re.sub(r" {2,}", "  ", line).strip() for line in lines[start + 1:]] == [
        "100 ms  71.4  process 100 thread 100 MainThread",
        f"100 ms  71.4  20.0 ms  1  └ main  {APP}:1",
        f"60.0 ms  42.9  30.0 ms  4  ├ Worker.work  {APP}:10",
        f"30.0 ms  21.4  20.0 ms  6  │ └ Worker.work  {APP}:10",
        "10.0 ms  7.1  10.0 ms  10  │  └ builtins.sum  built-in",
        f"20.0 ms  14.3  20.0 ms  9  └ gen  {APP}:30",
        "40.0 ms  28.6  process 100 thread 101 second",
        "40.0 ms  28.6  35.0 ms  2  └ other  /home/you/app.py:5",
        f"5.00 ms  3.6  5.00 ms  1  └ Worker.work  {APP}:10",
    ]


def test_tree_cut(recording):
    # Of 100 ms: main 100; below it work 60 and gen 20, which is too small, alone and together with
    # nothing else; below work 30, which is too deep but large enough for a line.
    text = report(recording, "--tree", "--thread", "100", "--depth", "2", "--min", "25%")
    lines = [re.sub(r" {2,}", "  ", line).strip() for line in text.splitlines()]
    assert lines[lines.index("total  %  self  calls  function") + 1:] == [
        "100 ms  100.0  process 100 thread 100 MainThread",
        f"100 ms  100.0  20.0 ms  1  └ main  {APP}:1",
        f"60.0 ms  60.0  30.0 ms  4  └ Worker.work  {APP}:10",
        "30.0 ms  30.0  └ 1 more",
    ]


def test_threads_and_processes(recording):
    threads = table(recording, "--threads")["threads"]
    assert [(t["process"], t["thread"], t["name"], t["cpu_ns"] / MS, t["calls"]) for t in threads] \
        == [(100, 100, "MainThread", 90, 30), (100, 101, "second", 10, 3), (200, 200, "", 0, 5)]
    processes = table(recording, "--processes")["processes"]
    assert [(p["process"], p["parent"], p["python"], p["profiled"], p["command"])
            for p in processes] == [
        (100, 1, "3.13.0", True, "python app.py -v"), (200, 100, "3.12.1", True, "python child.py"),
        (300, 0, "2.7.18", False, "python2 old.py")]
    text = report(recording, "--processes")
    assert "unprofiled" in text and "python2 old.py" in text
    assert cells(report(recording, "--threads"), "CPU")[0] == [
        "100", "100", "200 ms", "90.0 ms", "45.0", "30", "MainThread"]


def test_scope(recording):
    assert list(rows(recording, "--process", "200")) == ["run"]
    assert list(rows(recording, "--thread", "101")) == ["other", "Worker.work"]
    assert rows(recording, "--thread", "101")["Worker.work"]["calls"] == 1
    assert "no process 7" in fails(12, "report", recording, "--process", "7")
    assert "no thread 7" in fails(12, "report", recording, "--thread", "7")
    assert "no thread 101" in fails(12, "report", recording, "--process", "200", "--thread", "101")


def test_fold_filter_root(recording):
    folded = rows(recording, "--fold", "Worker.*")
    assert "Worker.work" not in folded
    assert (folded["main"]["self_ns"], folded["main"]["total_ns"]) == (70 * MS, 100 * MS)
    assert set(rows(recording, "--filter", "gen")) == {"main", "gen"}
    rooted = rows(recording, "--root", "Worker.work")
    assert set(rooted) == {"Worker.work", "<built-in method builtins.sum>"}
    assert rooted["Worker.work"]["total_ns"] == 65 * MS


def test_several_files_are_added_up(recording):
    twice = rows(recording, recording)
    assert twice["Worker.work"]["calls"] == 22
    assert twice["main"]["total_ns"] == 200 * MS


def test_csv(recording):
    found = list(csv.DictReader(io.StringIO(report(recording, "--csv"))))
    assert found[0] == {"function": "Worker.work", "file": APP, "line": "10", "calls": "11",
                        "primitive_calls": "5", "resumes": "0", "self_s": "0.055000000",
                        "total_s": "0.065000000", "min_s": "0.004000000", "max_s": "0.020000000",
                        "suspended_s": "0.000000000"}
    assert len(found) == 6
    edges = list(csv.DictReader(io.StringIO(report(recording, "--csv", "--callers"))))
    assert {(e["caller"], e["callee"], e["calls"]) for e in edges} == {
        ("main", "Worker.work", "4"), ("Worker.work", "Worker.work", "6"),
        ("other", "Worker.work", "1"), ("main", "gen", "9"),
        ("Worker.work", "<built-in method builtins.sum>", "10")}
    for part, count in (("--tree", 8), ("--threads", 3), ("--processes", 3)):
        assert len(list(csv.DictReader(io.StringIO(report(recording, "--csv", part))))) == count


def test_csv_and_json_quote(tmp_path):
    name = 'a "b", c\nd \x1b[31m λ'
    write(tmp_path / "a.prof", {("x,y", 1, name): (1, 1, 1.0, 1.0, {})})
    assert table("a.prof", cwd=tmp_path)["functions"][0]["name"] == name
    row = list(csv.DictReader(io.StringIO(report("--csv", "a.prof", cwd=tmp_path))))[0]
    assert (row["function"], row["file"]) == (r'a "b", c\nd \x1b[31m λ', "x,y")


def test_names_do_not_steer_the_terminal(tmp_path):
    write(tmp_path / "a.prof", {("a.py", 1, "x\x1b[2Jy\x07\x9b1mz"): (1, 1, 1.0, 1.0, {})})
    text = report("a.prof", cwd=tmp_path)
    assert r"x\x1b[2Jy\x07\x9b1mz" in text


def test_strip_dirs_keeps_files_apart(tmp_path):
    write(tmp_path / "a.prof", {
        ("/usr/lib/json/__init__.py", 1, "f"): (1, 1, 4.0, 4.0, {}),
        ("/usr/lib/re/__init__.py", 1, "f"): (1, 1, 3.0, 3.0, {}),
        ("/opt/re/__init__.py", 9, "g"): (1, 1, 2.0, 2.0, {}),
        ("/usr/lib/os.py", 1, "h"): (1, 1, 1.0, 1.0, {})})
    found = [row[-1] for row in cells(report("--strip-dirs", "a.prof", cwd=tmp_path), "per call")]
    assert found == ["json/__init__.py:1", "lib/re/__init__.py:1", "opt/re/__init__.py:9", "os.py:1"]
    # In pstats' layout only what would look alike keeps more of its path, and nothing is merged.
    text = report("--strip-dirs", "--pstats", "-s", "time", "a.prof", cwd=tmp_path)
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("        1")] == [
        "json/__init__.py:1(f)", "re/__init__.py:1(f)", "__init__.py:9(g)", "os.py:1(h)"]


def test_pstats_layout_adds_up_what_it_cannot_tell_apart(tmp_path):
    """Two functions of one file, line and name: one row, as a pstats key can be there once."""
    store = live_store.Store(1)
    root = store.thread(1)
    for qualname, calls in (("A.<lambda>", 2), ("B.<lambda>", 3)):
        store.node(root, store.function("<lambda>", 4, "f.py", qualname), calls, calls * MS)
    store.write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "a.fathom", cwd=tmp_path).returncode == 0
    assert len(table("a.fathom", cwd=tmp_path)["functions"]) == 2
    assert "        5    0.005    0.001    0.005    0.001 f.py:4(<lambda>)\n" in report(
        "--pstats", "a.fathom", cwd=tmp_path)
    assert fathom("convert", "a.fathom", "-o", "a.prof", cwd=tmp_path).returncode == 0
    assert read(tmp_path / "a.prof") == {("f.py", 4, "<lambda>"): (5, 5, 0.005, 0.005, {})}


# ---- looks ----

def on_a_terminal(columns: int, *args, env=None) -> str:
    """What the command writes to a terminal of that width."""
    import fcntl
    import struct
    import termios
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm"
        os.environ.update(env or {})
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execv(FATHOM, [FATHOM, *map(str, args)])
    text = b""
    while select.select([fd], [], [], 30)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(fd)
    assert os.waitpid(pid, 0)[1] == 0, text
    return text.decode().replace("\r\n", "\n")


def test_colours_on_a_terminal_only(recording):
    assert "\x1b[" not in report(recording)
    assert "\x1b[" in report(recording, "--color=always")
    text = on_a_terminal(200, "report", recording)
    assert "\x1b[" in text
    assert uncolored(text) == report(recording)
    assert "\x1b[" not in on_a_terminal(200, "report", recording, env={"NO_COLOR": "1"})
    assert "\x1b[" not in on_a_terminal(200, "report", recording, "--color=never")
    assert "\x1b[" not in on_a_terminal(200, "report", recording, env={"TERM": "dumb"})


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_fits_the_terminal(columns, tmp_path):
    write(tmp_path / "a.prof", {
        (f"/a/very/long/way/to/{'x' * 60}/{'名前' * 10}.py", 1, "方法" * 30): (1, 1, 1.0, 1.0, {}),
        ("~", 0, f"<built-in method {'b' * 200}>"): (10**9, 10**9, 1e5, 2e5, {})})
    for part in ((), ("--callers",)):
        text = on_a_terminal(columns, "report", *part, tmp_path / "a.prof", env={"NO_COLOR": "1"})
        lines = text.splitlines()[1:]
        assert "…" in text
        for line in lines:
            width = sum(2 if "⺀" <= c <= "鿿" else 1 for c in line)
            assert width <= columns, line
            if "…" in line:
                assert width >= columns - 2


@pytest.mark.parametrize("ns, shown", [
    (0, "0"), (1, "1 ns"), (999, "999 ns"), (1000, "1.00 µs"), (9994, "9.99 µs"), (9996, "10.0 µs"),
    (99940, "99.9 µs"), (99960, "100 µs"), (456_000, "456 µs"), (999_400, "999 µs"),
    (999_600, "1.00 ms"), (12_345_678, "12.3 ms"), (1_234_000_000, "1.234 s"),
    (12_345_000_000, "12.35 s"), (123_456_000_000, "123.5 s"), (754_000_000_000, "12 min 34 s"),
    (7_500_000_000_000, "2 h 05 min"),
])
def test_times_with_units(ns, shown, tmp_path):
    write(tmp_path / "a.prof", {("a.py", 1, "f"): (1, 1, ns * 1e-9, ns * 1e-9, {})})
    line, = [x for x in report("a.prof", cwd=tmp_path).splitlines() if "a.py:1" in x]
    assert re.search(rf"(^|  ){re.escape(shown)}  ", line), line


# ---- wrong requests ----

@pytest.mark.parametrize("args, status, words", [
    (["--sort", "speed"], 10, 'no sort key "speed"'),
    (["--sort", "n"], 10, "ambiguous: ncalls, name, nfl"),
    (["--sort", "time,"], 10, 'no sort key ""'),
    (["-r", "a(b"], 10, 'pattern "a(b" is wrong'),
    (["-r", "1.5"], 10, "not between 0 and 1"),
    (["-r", "-3"], 10, "makes no sense"),
    (["-r", ""], 10, "empty"),
    (["-n", "many"], 2, "--limit takes a whole number"),
    (["-n", "-1"], 2, "--limit takes a whole number"),
    (["--min", "x"], 2, "--min takes a percentage"),
    (["--color", "red"], 2, "--color is auto, always or never"),
    (["--nonsense"], 2, "--nonsense is no option"),
    (["-q"], 2, "no option -q"),
    (["--sort"], 2, "--sort needs a value"),
    (["--pstats", "--tree"], 2, "pstats has no such report"),
    (["--tree"], 12, "no calling contexts"),
    (["--threads"], 12, "holds no threads"),
    (["--processes"], 12, "holds no processes"),
    (["--fold", "f"], 12, "need calling contexts"),
])
def test_wrong_requests(args, status, words, tmp_path):
    write(tmp_path / "a.prof", {("a", 1, "f"): (1, 1, 0.5, 0.5, {})})
    assert words in fails(status, "report", "a.prof", *args, cwd=tmp_path)


def test_wrong_files(tmp_path):
    assert "does not exist" in fails(3, "report", "nothing.fathom", cwd=tmp_path)
    assert "is a folder" in fails(9, "report", ".", cwd=tmp_path)
    assert "at least one recording" in fails(2, "report", cwd=tmp_path)
    write(tmp_path / "a.prof", {("a", 1, "f"): (1, 1, 0.5, 0.5, {})})
    assert "does not exist" in fails(3, "report", "a.prof", "nothing", cwd=tmp_path)
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0)
    if not os.access(tmp_path / "secret", os.R_OK):
        assert "Permission denied" in fails(9, "report", "secret", cwd=tmp_path)


def test_full_output(recording):
    with open("/dev/full", "wb") as full:
        import subprocess
        done = subprocess.run([FATHOM, "report", recording], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 8
    assert done.stderr == b"fathom report: the report cannot be written\n"


def test_verbs():
    assert fathom("--version").stdout.startswith(b"fathom ")
    for args in (["--help"], ["help"], ["report", "--help"], ["help", "convert"], ["merge", "-h"]):
        done = fathom(*args)
        assert done.returncode == 0 and done.stdout.startswith(b"Usage: fathom"), args
    done = fathom("dance")
    assert (done.returncode, done.stderr) == (
        2, b'fathom: there is no verb "dance". Try `fathom --help`.\n')
    assert fathom().returncode == 2


def test_json_is_whole(recording):
    for part in ((), ("--callers",), ("--callees",), ("--tree",), ("--threads",), ("--processes",)):
        data = json.loads(report("--json", recording, *part))
        assert data["fathom"] and data["files"] == [str(recording)]
        assert data["calls"] == 38 and data["added_ns"] == 100_000
