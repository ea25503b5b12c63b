"""A metric is one line, and so is a state: CONTRIBUTING promises it.

Both lines are added to a copy of the tree, the copy is built, and a recording that its own tool wrote
(tests/unit/tool_metrics.c: a number of every metric in every context) must show them everywhere: tables,
sort keys, CSV, JSON, formats, the call graph and the page.

The numbers are worked out by hand: what is each context's own is main 1, f 2, g 3 below f and 4 below
main, so with callees main has 10, f 5 and g 7. A ping is a KiB, a state a millisecond."""

import csv
import gzip
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM, REPO

METRIC = 'X(PINGS, "pings", "ping size", BYTES, SUM, SELF, EXACT, COLUMN, 0x112233, 0x445566)'
STATE = 'X(PONDER, "ponder", "think", \'t\', "thought", "pondering", false, CYAN, 0x123456, 0x654321)'
OWN = {"main": 1, "f": 2, "g": 7}
TOTAL = {"main": 10, "f": 5, "g": 7}
KIB, MS = 1024, 1_000_000


def add_line(path, line):
    """Add a line at the end of the list that the file has between its two marks of clang-format."""
    text = path.read_text()
    head, mark, rest = text.partition("/* clang-format on */")
    assert mark, f"{path} has no list"
    path.write_text(f"{head.rstrip()} \\\n    {line}\n{mark}{rest}")


def what_was_made(folder, names):
    """Built, fetched or recorded beside the sources: needs no copy."""
    if Path(folder) == REPO:
        return {n for n in names if n == ".git" or n == "build" or n.startswith("build-")}
    return {"node_modules", "__pycache__"} & set(names)


class Built:
    """A tree with both lines, built, and the recording of its tool."""

    def __init__(self, tree):
        self.tree, self.fathom = tree, tree / "build" / "fathom"
        self.recording = tree / "every.fathom"
        subprocess.run([tree / "build" / "tests" / "unit" / "tool_metrics", self.recording], check=True)

    def run(self, *args):
        done = subprocess.run([self.fathom, *map(str, args)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *args):
        return json.loads(self.run("report", "--json", *args, self.recording))

    def csv(self, *args):
        return list(csv.DictReader(io.StringIO(self.run("report", "--csv", *args, self.recording))))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    for tool in ("meson", "ninja", "clang"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    tree = tmp_path_factory.mktemp("one-line") / "fathom"
    shutil.copytree(REPO, tree, symlinks=True, ignore=what_was_made)
    add_line(tree / "src" / "record" / "model" / "metrics.h", METRIC)
    add_line(tree / "src" / "record" / "model" / "states.h", STATE)
    for command in (["meson", "setup", "build"],
                    ["ninja", "-j2", "-C", "build", "fathom", "tests/unit/tool_metrics"]):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return Built(tree)


def test_the_table_has_the_columns(built):
    lines = built.run("report", "--color", "never", built.recording).splitlines()
    title = next(line for line in lines if line.endswith(" function"))
    assert "ping size  total ping size" in title
    row = next(line for line in lines if "  f  /srv/app.py" in line)
    assert "2.00 KiB" in row and "5.00 KiB" in row


def test_states_have_a_column_a_word_a_letter_and_a_colour(built):
    table = built.run("report", "--states", "--color", "never", built.recording)
    assert " ponder " in table.splitlines()[4]
    only = ["--state", "ponder", "--color", "always"]
    words = built.run("report", *only, "--width", "160", built.recording)
    assert "\033[36mthink 100\033[0m" in words
    bar = built.run("report", *only, "--width", "80", built.recording)
    assert "\033[36mtttttttt\033[0m" in bar and "t thought" in bar


@pytest.mark.parametrize("key, order", [
    ("pings", ["g", "f", "main"]),
    ("total_pings", ["main", "g", "f"]),
    ("ponder", ["g", "f", "main"]),
    ("ping", ["g", "f", "main"]),
])
def test_sort_keys(built, key, order):
    assert [f["name"] for f in built.json("--sort", key)["functions"]] == order
    assert [f["name"] for f in built.json("--sort", key, "--reverse")["functions"]] == order[::-1]


def test_the_list_of_sort_keys_names_them(built):
    done = subprocess.run([built.fathom, "report", "--sort", "nothing", built.recording],
                          capture_output=True, text=True)
    assert done.returncode == 10
    for key in ("pings", "total_pings", "ponder"):
        assert f", {key}" in done.stderr
    assert " pings total_pings " in built.run("report", "--help")
    assert " ponder\n" in built.run("report", "--help")


def test_json(built):
    for f in built.json()["functions"]:
        assert f["pings_bytes"] == OWN[f["name"]] * KIB
        assert f["total_pings_bytes"] == TOTAL[f["name"]] * KIB
        assert f["states_ns"]["ponder"] == OWN[f["name"]] * MS
        assert f["total_states_ns"]["ponder"] == TOTAL[f["name"]] * MS


def test_csv(built):
    for f in built.csv():
        assert int(f["pings_bytes"]) == OWN[f["function"]] * KIB
        assert int(f["total_pings_bytes"]) == TOTAL[f["function"]] * KIB
        assert float(f["ponder_s"]) == OWN[f["function"]] / 1000


def test_tree_callers_and_threads(built):
    tree = [(n["name"], n["pings_bytes"], n["total_pings_bytes"]) for n in built.json("--tree")["tree"]
            if n["depth"]]
    assert tree == [("main", KIB, 10 * KIB), ("f", 2 * KIB, 5 * KIB), ("g", 3 * KIB, 3 * KIB),
                    ("g", 4 * KIB, 4 * KIB)]
    callers = next(f for f in built.json("--callers")["functions"] if f["name"] == "g")["callers"]
    assert {c["name"]: c["total_pings_bytes"] for c in callers} == {"f": 3 * KIB, "main": 4 * KIB}
    assert built.json("--threads")["threads"][0]["pings_bytes"] == 10 * KIB
    assert "4.00 KiB" in built.run("report", "--tree", built.recording)
    assert "ping size" in built.run("report", "--callees", built.recording)


def test_folding_moves_what_is_a_functions_own_to_its_caller(built):
    rows = {f["name"]: f for f in built.json("--fold", "f")["functions"]}
    assert rows["main"]["pings_bytes"] == (1 + 2) * KIB
    assert rows["main"]["states_ns"]["ponder"] == (1 + 2) * MS
    assert rows["g"]["total_pings_bytes"] == 7 * KIB


def test_formats(built):
    stacks = {}
    for line in built.run("convert", "--to", "collapsed", "--metric", "pings", "-o", "-",
                          built.recording).splitlines():
        stack, number = line.rsplit(" ", 1)
        stacks[tuple(frame.split()[0] for frame in stack.split(";"))] = int(number)
    assert stacks == {("main",): KIB, ("main", "f"): 2 * KIB, ("main", "f", "g"): 3 * KIB,
                      ("main", "g"): 4 * KIB}
    callgrind = built.run("convert", "--to", "callgrind", "-o", "-", built.recording)
    assert "events: ns pings\nsummary: 10000000 10240\n" in callgrind
    speedscope = json.loads(built.run("convert", "--to", "speedscope", "-o", "-", built.recording))
    assert sum(speedscope["profiles"][0]["pings"]) == 10 * KIB
    pprof = built.tree / "every.pb.gz"
    built.run("convert", "-f", built.recording, "-o", pprof)
    assert b"pings" in gzip.decompress(pprof.read_bytes())


def test_the_call_graph(built):
    dot = built.run("graph", "--metric", "pings", "--to", "dot", "-o", "-", built.recording)
    assert "10.0 KiB" in dot and "self 2.00 KiB" in dot
    ponder = built.run("graph", "--metric", "ponder", "--to", "dot", "-o", "-", built.recording)
    assert "total 5.00 ms, self 2.00 ms" in ponder


def test_a_fathom_without_these_lines_opens_the_recording(built):
    done = subprocess.run([FATHOM, "report", "--json", built.recording], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {f["name"]: f for f in json.loads(done.stdout)["functions"]}
    assert {name: f["total_ns"] for name, f in rows.items()} == {n: v * MS for n, v in TOTAL.items()}
    assert "pings_bytes" not in rows["main"] and "ponder" not in rows["main"]["states_ns"]


def test_the_page(built):
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    here = REPO / "tests" / "browser"
    if not shutil.which("node") or not chromium or not (here / "node_modules").is_dir():
        pytest.skip("no node, no chromium, or tests/browser/run has not fetched playwright-core yet")
    done = subprocess.run(["node", "--test", "one_line.js"], cwd=here, capture_output=True, text=True,
                          env=dict(os.environ, FATHOM=str(built.fathom), CHROMIUM=chromium,
                                   RECORDING=str(built.recording)))
    assert done.returncode == 0, done.stdout
