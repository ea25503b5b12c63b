"""Collapsed stacks, speedscope, pprof and pstats of sampled recordings: what Fathom writes, what
the tools that read these formats make of it, and what Fathom reads of others.

The recording is the one that tests/unit/tool_sampled.c draws: 1,000 samples of 1 ms."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from launch import FATHOM, own_run_folders  # noqa: F401  (the fixture)
from pstats_tools import INTERPRETERS, fails, fathom, python, read, same_numbers, table, write

TOOL = Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_sampled"
PPROF = shutil.which("pprof")
MS = 1_000_000

# name: (self, total) in ms and in samples alike
FUNCTIONS = {"price": (400, 400), "fetch": (230, 230), "work": (150, 150), "main": (120, 850),
             "walk": (100, 500), "<module>": (0, 850)}
STATES = {"python": 450, "c": 100, "gil": 100, "lock": 50, "network": 200, "sleep": 100}
MODULE, MAIN, WALK = "<module> (/srv/app.py:1)", "main (/srv/app.py:15)", "walk (/srv/app.py:10)"
STACKS = {
    f"thread (100): MainThread;{MODULE};{MAIN}": 120,
    f"thread (100): MainThread;{MODULE};{MAIN};fetch (/srv/app.py:6)": 230,
    f"thread (100): MainThread;{MODULE};{MAIN};{WALK}": 50,
    f"thread (100): MainThread;{MODULE};{MAIN};{WALK};{WALK}": 50,
    f"thread (100): MainThread;{MODULE};{MAIN};{WALK};{WALK};price (/srv/app.py:3)": 400,
    "thread (101): worker;work (/srv/lib.py:1)": 150,
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("formats") / "app.fathom"
    subprocess.run([TOOL, path], check=True, timeout=300)
    return path


@pytest.fixture
def converted(recording, tmp_path):
    def convert(name):
        done = fathom("convert", recording, "-o", tmp_path / name)
        assert (done.returncode, done.stderr) == (0, b""), done
        return tmp_path / name
    return convert


def rows(path) -> dict[str, dict]:
    return {row["name"]: row for row in table(path, "-n", "all")["functions"]}


# ---- written, and read back ----

def test_callgrind_has_the_time_of_the_samples(converted):
    text = converted("app.callgrind").read_text()
    assert "\nsummary: 1000000000 0\n" in text  # 1,000 ms; no line began



@pytest.mark.parametrize("name", ["x.collapsed", "x.folded"])
def test_collapsed(converted, name):
    lines = converted(name).read_text().splitlines()
    assert {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines} == STACKS


def test_callgrind(converted):
    """Times alone: it has no samples. Calls of a function by itself are a function of their own there."""
    path = converted("x.callgrind")
    assert "summary: 1000000000 0\n" in path.read_text()
    assert {name: row["self_ns"] // MS for name, row in rows(path).items()} == {
        name: own for name, (own, _) in FUNCTIONS.items()}


@pytest.mark.parametrize("name, unit_ns", [("x.collapsed", 1), ("x.speedscope.json", MS),
                                           ("x.pb.gz", MS), ("x.pprof", MS)])
def test_read_back(converted, name, unit_ns):
    """A collapsed file has samples, but no times."""
    path = converted(name)
    found = rows(path)
    assert found.keys() == FUNCTIONS.keys()
    for function, (own, total) in FUNCTIONS.items():
        row = found[function]
        assert (row["self_ns"], row["total_ns"]) == (own * unit_ns, total * unit_ns), function
        assert row["samples"] == own, function
    assert ("1 ns stands for one" in fathom("report", path).stdout.decode()) == (unit_ns == 1)


def test_speedscope_text(converted):
    data = json.loads(converted("x.speedscope.json").read_text())
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    stacks = {}
    for profile in data["profiles"]:
        assert (profile["type"], profile["unit"], profile["startValue"]) == (
            "sampled", "nanoseconds", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        for stack, weight in zip(profile["samples"], profile["weights"]):
            stacks[profile["name"], *(frames[i] for i in stack)] = weight
    main = ('Thread 100 "MainThread"', "<module>", "main")
    assert stacks == {main: 120 * MS, (*main, "fetch"): 230 * MS, (*main, "walk"): 50 * MS,
                      (*main, "walk", "walk"): 50 * MS,
                      (*main, "walk", "walk", "price"): 400 * MS,
                      ('Thread 101 "worker"', "work"): 150 * MS}


def test_pstats(converted):
    """(samples with it on the stack, the same, self, total, {caller: the same four of it}).
    Of walk's 500 ms, 450 are of the inner one, which has 50 of its own."""
    keys = {name: (f"/srv/{file}.py", line, name) for name, file, line in (
        ("<module>", "app", 1), ("main", "app", 15), ("fetch", "app", 6), ("walk", "app", 10),
        ("price", "app", 3), ("work", "lib", 1))}
    callers = {"<module>": {}, "main": {"<module>": (120, 850)}, "fetch": {"main": (230, 230)},
               "walk": {"main": (50, 500), "walk": (50, 450)}, "price": {"walk": (400, 400)},
               "work": {}}
    same_numbers(read(converted("x.pstats")), {
        keys[name]: (total, total, own / 1000, total / 1000,
                     {keys[k]: (n, n, n_own / 1000, n / 1000)
                      for k, (n_own, n) in callers[name].items()})
        for name, (own, total) in FUNCTIONS.items()})


USE = """
import pstats, sys
stats = pstats.Stats(sys.argv[1])
stats.add(sys.argv[1])
stats.sort_stats("cumulative").print_stats()
stats.print_callers()
stats.print_callees()
stats.dump_stats(sys.argv[2])
"""


@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_python_opens_the_pstats(converted, version):
    """Loads, adds, prints and writes it again; twice 850 samples, 120 and 850 ms are main's."""
    path = converted("x.pstats")
    out = python(version, USE, path.name, "again.prof", cwd=path.parent)
    assert re.search(r"^ +1700 +0\.240 .* 1\.700 .*app\.py:15\(main\)$", out, re.M), out
    assert re.search(r"<- +1700 +0\.240 +1\.700 +/srv/app\.py:1\(<module>\)", out), out
    key = ("/srv/app.py", 15, "main")
    assert read(path.parent / "again.prof")[key][:2] == (1700, 1700)


# ---- in the tools that own the formats ----

def pprof(*args) -> str:
    if not PPROF:
        pytest.skip("Google's pprof is not installed")
    done = subprocess.run([PPROF, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("index", ["wall", "samples"])
def test_pprof_shows_the_same(converted, index):
    unit = ["-unit=ms"] if index == "wall" else []
    out = pprof("-top", "-nodefraction=0", *unit, f"-sample_index={index}", converted("x.pb.gz"))
    shown = {m[3]: (float(m[1]), float(m[2])) for m in re.finditer(
        r"^ *([\d.]+)(?:ms)? +[\d.]+% +[\d.]+% +([\d.]+)(?:ms)? +[\d.]+% +(.*)$", out, re.M)}
    assert shown == FUNCTIONS, out


def test_pprof_tells_states_and_threads_apart(converted):
    out = pprof("-tags", "-unit=ms", converted("x.pb.gz"))
    tags = {m[2]: float(m[1]) for m in re.finditer(r"^ *([\d.]+)ms \([ \d.]+%\): (\w+)$", out, re.M)}
    assert {state: tags.get(state) for state in STATES} == STATES, out
    assert (tags["MainThread"], tags["worker"]) == (850, 150)


def test_pprof_callers(converted):
    out = pprof("-peek", "^price$", "-unit=ms", converted("x.pb.gz"))
    assert re.search(r"400ms +100% \| +walk\n +400ms .*\| price$", out, re.M), out


def test_pprof_is_plain_gzip(converted):
    """Field 1 of the message first, its texts in it."""
    raw = gzip.decompress(converted("x.pb.gz").read_bytes())
    assert raw[0] == 0x0a and b"nanoseconds" in raw and b"/srv/app.py" in raw


# ---- of others ----

PYSPY = """\
process 1:"python a.py";thread (1): MainThread;<module> (a.py:9);work (a.py:4) 30
process 1:"python a.py";thread (1): MainThread;<module> (a.py:9);work (a.py:3) 10
process 1:"python a.py";process 2:"python b.py";thread (2);<module> (b.py:1) 60
"""
AUSTIN = """\
# austin: 3.7.0
# interval: 5000
# mode: wall

P1;T0:1;/a.py:<module>:9;/a.py:work:4 30000
P1;T0:1;/a.py:<module>:9;/a.py:work:3 10000
P1;T0:2;/b.py:<module>:1 60000

# duration: 100000
"""
TACHYON = """\
tid:1;a.py:<module>:9;a.py:work:4 30
tid:1;a.py:<module>:9;a.py:work:3 10
tid:2;b.py:<module>:1 60
"""


@pytest.mark.parametrize("text, unit_ns", [(PYSPY, 1), (AUSTIN, MS), (TACHYON, 1)],
                         ids=["py-spy", "austin", "profiling.sampling"])
def test_collapsed_of_others(text, unit_ns, tmp_path):
    (tmp_path / "x").write_text(text)
    data = table(tmp_path / "x", "-n", "all")
    found = {(Path(row["file"]).name, row["name"]): (row["self_ns"], row["total_ns"], row["line"])
             for row in data["functions"]}
    assert found == {("a.py", "work"): (40 * unit_ns, 40 * unit_ns, 3),
                     ("a.py", "<module>"): (0, 40 * unit_ns, 9),
                     ("b.py", "<module>"): (60 * unit_ns, 60 * unit_ns, 1)}
    shown = fathom("report", tmp_path / "x").stdout.decode()
    assert ("2 processes" if "process" in text else "1 process") in shown
    assert "2 threads" in shown


@pytest.mark.skipif("3.15" not in INTERPRETERS, reason="profiling.sampling came with Python 3.15")
@pytest.mark.parametrize("option", ["--collapsed", "--pstats"])
def test_pythons_own_sampler(option, tmp_path):
    (tmp_path / "spin.py").write_text(
        "import time\ndef spin(end):\n    while time.monotonic() < end: pass\n"
        "spin(time.monotonic() + 0.5)\n")
    done = subprocess.run([INTERPRETERS["3.15"], "-m", "profiling.sampling", "run", option, "-o",
                           "out", "spin.py"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=300)
    if not (tmp_path / "out").exists():
        pytest.skip(f"profiling.sampling wrote nothing here: {done.stderr[-200:]}")
    # Modules that it imports while it is watched are called <module>, too.
    found = {row["name"]: row for row in table(tmp_path / "out", "-n", "all")["functions"]
             if row["file"].endswith("spin.py")}
    assert found["spin"]["self_ns"] > 0
    assert found["spin"]["total_ns"] <= found["<module>"]["total_ns"]


def test_pyinstruments_pstats(tmp_path):
    """It counts no calls, and says so by -1."""
    main, f = ("a.py", 1, "main"), ("a.py", 5, "f")
    write(tmp_path / "x.pstats", {main: (-1, -1, 0.25, 1.0, {}),
                                  f: (-1, -1, 0.75, 0.75, {main: (-1, -1, 0.75, 0.75)})})
    data = table(tmp_path / "x.pstats")
    assert {row["name"]: (row["calls"], row["self_ns"], row["total_ns"])
            for row in data["functions"]} == {"main": (0, 250 * MS, 1000 * MS),
                                              "f": (0, 750 * MS, 750 * MS)}
    assert any(note["kind"] == "uncounted" for note in data["notes"])


# ---- refused ----

def test_a_table_has_no_stacks(tmp_path):
    write(tmp_path / "x.prof", {("a.py", 1, "f"): (1, 1, 0.5, 0.5, {})})
    for name in ("x.collapsed", "x.speedscope.json", "x.pb.gz"):
        assert "not the stacks" in fails(12, "convert", tmp_path / "x.prof", "-o", tmp_path / name)
        assert not (tmp_path / name).exists()


def test_damaged(converted, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("main;f 12\nmain;g\n")
    assert "in no format" in fails(4, "report", bad)
    bad.write_text("# austin: 3.7.0\nP1;T1;a.py:f:1\n")
    assert f"reading {bad}: line 2: a stack does not end in a space" in fails(5, "report", bad)
    bad.write_bytes(converted("x.pb.gz").read_bytes()[:-20])
    assert "its compressed data is cut off" in fails(5, "report", bad)
    bad.write_bytes(gzip.compress(b"\x0a\x00" * (100 << 20)))
    assert "no honest profile" in fails(5, "report", bad)
    bad.write_text(converted("x.speedscope.json").read_text().replace("[0,1]", "[0,99]", 1))
    assert "profile 0: sample 0: it has a frame that does not exist" in fails(5, "report", bad)
    bad.write_bytes(gzip.compress(b"hello"))
    assert "in no format" in fails(4, "report", bad)


def test_lprof_has_samples_as_hits(recording, tmp_path):
    """line_profiler divides the time of a line by its hits."""
    assert fathom("convert", recording, "-o", tmp_path / "a.lprof").returncode == 0
    back = json.loads(fathom("report", "--json", "--lines", tmp_path / "a.lprof").stdout)
    rows = [row for function in back["functions"] for row in function["lines"]]
    assert rows and all(row["hits"] > 0 for row in rows)
    assert sum(row["hits"] for row in rows) == 1000


def test_a_cut_off_recording_is_said_to_be_one(recording, tmp_path):
    whole = Path(recording).read_bytes()
    (tmp_path / "cut.fathom").write_bytes(whole[:len(whole) * 3 // 4])
    for words in (("convert", "cut.fathom", "-o", "cut.prof"), ("view", "cut.fathom", "-o", "cut.html")):
        done = fathom(*words, cwd=tmp_path)
        assert b"the recording ends early" in done.stderr, words
