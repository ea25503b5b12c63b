"""Reports of sampled recordings. The recording is the one that tests/unit/tool_sampled.c draws and
writes: 1,000 samples of 1 ms. Every expected number is worked out from that drawing."""

import csv
import io
import json
import marshal
import math
import re
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM

TOOL = Path(FATHOM).resolve().parent / "tests" / "unit" / "tool_sampled"

# name: (self, total, states of its own), in ms and in samples alike
FUNCTIONS = {
    "price": (400, 400, {"python": 300, "c": 100}),
    "fetch": (230, 230, {"python": 30, "network": 200}),
    "work": (150, 150, {"gil": 100, "lock": 50}),
    "main": (120, 850, {"python": 20, "sleep": 100}),
    "walk": (100, 500, {"python": 100}),
    "<module>": (0, 850, {}),
}
STATES = ["python", "c", "gil", "lock", "disk", "network", "sleep", "other"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("sampled") / "app.fathom"
    subprocess.run([TOOL, path], check=True, timeout=300)
    return str(path)


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


def own(states):
    """All states of a row that are not zero, in ms."""
    return {name: ns // 10**6 for name, ns in states.items() if ns}


def wilson(k, n, z=1.959963984540054):
    """The ends of the Wilson score interval, as roots of (p - k/n)² = z² p (1 - p) / n."""
    share = k / n
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


PARTIAL = 3 / 1000  # of the samples: they are no evidence


def error(k, n):
    """Of a share k/n, of which as many as of all were seen whole."""
    low, high = wilson(k * (1 - PARTIAL), n * (1 - PARTIAL))
    return max(high - k / n, k / n - low)


# ---- the functions ----

def test_header_states_the_error(recording):
    text = run(recording)
    head = text.split("\n\n", 1)[0].splitlines()
    assert head[1] == "Python 3.13.0 · 850 ms wall · 1 process · 2 threads"
    worst = f"{100 * error(500, 1000):.1f}"
    assert head[2] == ("1,000 samples at 1,000 Hz (wall), 3 partial (0.3 %), 2 lost (0.2 %); "
                       f"shares of the 997 seen whole are right within ± {worst} % (95 %)")
    assert head[3].endswith("took 17.0 ms of processor time (2.0 % of one)")


def test_functions(recording):
    rows = body(run(recording))
    assert rows[0].split() == ["self", "%", "±", "total", "%", "samples", "states", "function"]
    for line, (name, (self_ms, total_ms, states)) in zip(rows[1:], FUNCTIONS.items()):
        assert f"  {name}  " in line
        cells = line.split()
        if not self_ms:
            continue
        assert cells[:8] == [str(self_ms), "ms", f"{self_ms / 10:.1f}",
                             f"{100 * error(self_ms, 1000):.1f}", str(total_ms), "ms",
                             f"{total_ms / 10:.1f}", str(self_ms)]
        words = dict(python="py", c="C", network="net")
        largest = sorted(states.items(), key=lambda item: -item[1])
        assert " · ".join(f"{words.get(s, s)} {100 * ms / self_ms:.0f}"
                          for s, ms in largest) in line


def test_shares_are_of_all_samples(tmp_path):
    """250 more show no Python frame: 1,250 ms in all, in the report as in every other format."""
    path = tmp_path / "outside.fathom"
    subprocess.run([TOOL, path, "250"], check=True, timeout=300)
    lines = body(run(str(path)))
    price = next(line for line in lines if "  price  " in line).split()
    assert price[:3] == ["400", "ms", "32.0"]
    assert price[3] == "2.6"  # Wilson's interval of 400 of 1,250: 29.5 to 34.6 %
    assert "250 ms (20.0 %) in no Python function" in lines
    tree = [line.split() for line in body(run("--tree", str(path)))]
    assert tree[1] == ["1.100", "s", "88.0", "250", "ms", "1,100", "thread", "100", "MainThread"]
    assert ["850", "ms", "68.0"] == tree[2][:3]
    head = as_json(str(path))
    assert (head["self_ns"], head["outside_ns"]) == (1250 * 10**6, 250 * 10**6)
    stacks = subprocess.run([FATHOM, "convert", str(path), "--to", "collapsed", "-o", "-"],
                            capture_output=True, text=True, check=True, timeout=300).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in stacks.splitlines()) == 1250
    assert body(run("--spots", str(path)))[0].startswith(" 24.0 % ")  # 300 of 1,250


def test_functions_in_80_columns(recording):
    lines = body(run("--width", "80", recording))
    assert all(len(line) <= 80 for line in lines)
    assert "  ppppppCC  price  app.py:3" in lines[1]  # 75 % and 25 % of eight cells
    assert "  pnnnnnnn  fetch" in lines[2]            # 1.04 and 6.96 of them
    assert "  ggggglll  work" in lines[3]             # 5.33 and 2.67
    assert lines[-1] == "states: p Python, C C code, g GIL, l lock, n network, s sleep"


@pytest.mark.parametrize("width", ["79", "100", "200"])
@pytest.mark.parametrize("part", [[], ["--states"], ["--waits"], ["--threads"], ["--hot", "5"]])
def test_no_width_breaks_a_page(recording, width, part):
    for line in body(run("--width", width, *part, recording)):
        assert len(line) <= int(width)


def test_colours_add_nothing_but_colours(recording):
    for part in ([], ["--states"], ["--waits"], ["--spots"], ["--threads"], ["--lines"]):
        for width in ("80", "140"):
            plain = run("--color", "never", "--width", width, *part, recording)
            coloured = run("--color", "always", "--width", width, *part, recording)
            assert plain != coloured
            assert re.sub("\033\\[[0-9;]*m", "", coloured) == plain


def test_sorted_by_samples(recording):
    names = [row["name"] for row in as_json("--sort", "samples", recording)["functions"]]
    assert names == list(FUNCTIONS)
    assert [row["name"] for row in as_json("-s", "total", "-n", "2", recording)["functions"]] == [
        "<module>", "main"]


def test_functions_as_json(recording):
    page = as_json(recording)
    assert page["sampled"] is True
    sampling = page["sampling"]
    assert sampling["error"] == pytest.approx(error(500, 1000), abs=1e-6)
    del sampling["error"]
    assert sampling == {"samples": 1000, "whole": 997, "partial": 3, "lost": 2, "rounds": 850, "asked_hz": 1000,
                        "mode": "wall", "sampler_cpu_ns": 17_000_000}
    for row in page["functions"]:
        self_ms, total_ms, states = FUNCTIONS[row["name"]]
        assert (row["samples"], row["total_samples"]) == (self_ms, total_ms)
        assert (row["self_ns"], row["total_ns"]) == (self_ms * 10**6, total_ms * 10**6)
        assert row["self_error"] == pytest.approx(error(self_ms, 1000), abs=1e-6)
        assert own(row["states_ns"]) == states
        assert list(row["states_ns"]) == STATES
    by_name = {row["name"]: row for row in page["functions"]}
    assert own(by_name["walk"]["total_states_ns"]) == {"python": 400, "c": 100}
    assert own(by_name["main"]["total_states_ns"]) == {
        "python": 450, "c": 100, "network": 200, "sleep": 100}


def test_functions_as_csv(recording):
    rows = as_csv(recording)
    assert [row["function"] for row in rows] == list(FUNCTIONS)
    for row in rows:
        self_ms, total_ms, states = FUNCTIONS[row["function"]]
        assert (int(row["samples"]), int(row["total_samples"])) == (self_ms, total_ms)
        assert float(row["self_s"]) == self_ms / 1000
        assert {s: float(row[s + "_s"]) for s in STATES if float(row[s + "_s"])} == {
            s: ms / 1000 for s, ms in states.items()}


def test_pstats_counts_samples_as_pythons_sampler_does(recording):
    text = run("--pstats", "--sort", "tottime", recording)
    assert re.search(r"nsamples +tottime", text)
    assert re.search(r"^ +500/100 +0.100 .* 0.500 .*\(walk\)$", text, re.M)


# ---- threads, processes, trees, callers ----

def test_threads(recording):
    rows = body(run("--threads", recording))
    assert rows[0].split() == ["process", "thread", "wall", "CPU", "%", "samples", "states", "name"]
    assert rows[1].split()[-10:] == ["850", "py", "53", "·", "net", "24", "·", "C", "12",
                                     "MainThread"]
    # 550 ms and 1 ms of processor time, of 850 ms each
    assert rows[1].split()[:7] == ["100", "100", "850", "ms", "550", "ms", "64.7"]
    assert rows[2].split()[:7] == ["100", "101", "850", "ms", "1.00", "ms", "0.1"]
    assert [row["cpu_s"] for row in as_csv("--threads", recording)] == ["0.550000000", "0.001000000"]
    threads = as_json("--threads", recording)["threads"]
    assert [t["cpu_ns"] for t in threads] == [550_000_000, 1_000_000]
    assert [t["samples"] for t in threads] == [850, 150]
    assert own(threads[0]["states_ns"]) == {"python": 450, "c": 100, "network": 200, "sleep": 100}
    assert own(threads[1]["states_ns"]) == {"gil": 100, "lock": 50}
    assert [row["samples"] for row in as_csv("--threads", recording)] == ["850", "150"]


def test_one_thread(recording):
    page = as_json("--thread", "101", recording)
    assert [row["name"] for row in page["functions"]] == ["work"]
    assert page["sampling"]["samples"] == 150
    assert page["functions"][0]["self_error"] == pytest.approx(error(150, 150), abs=1e-6)


def test_processes(recording):
    rows = body(run("--processes", recording))
    assert "samples" in rows[0] and "1,000" in rows[1]
    assert as_json("--processes", recording)["processes"][0]["lost"] == 2


def test_tree(recording):
    rows = body(run("--tree", recording))
    assert rows[0].split() == ["total", "%", "self", "samples", "function"]
    assert "450 ms  45.0  50.0 ms      450      │ └ walk" in rows[5]
    tree = as_json("--tree", recording)["tree"]
    inner = [node for node in tree if node["name"] == "walk"][1]
    assert inner["samples"] == 50 and own(inner["states_ns"]) == {"python": 50}
    assert [row["samples"] for row in as_csv("--tree", recording)] == [
        "0", "120", "50", "50", "400", "230", "150"]


def test_callers(recording):
    rows = body(run("--callers=walk", recording))
    assert rows[0].split()[0] == "samples"
    assert rows[1].split()[0] == "500"
    assert rows[2].split()[:1] == ["500"] and "← main" in rows[2]
    assert rows[3].split()[:1] == ["450"] and "90.0    ← walk" in rows[3]
    callers = as_json("--callers=walk", recording)["functions"][0]["callers"]
    assert [(c["name"], c["samples"], c["total_samples"]) for c in callers] == [
        ("main", 50, 500), ("walk", 50, 450)]
    assert [row["total_samples"] for row in as_csv("--callees=main", recording)] == ["500", "230"]


def test_reshaping(recording):
    folded = as_json("--fold", "walk", recording)["functions"]
    assert {row["name"]: row["samples"] for row in folded} == {
        "price": 400, "fetch": 230, "main": 220, "work": 150, "<module>": 0}
    filtered = as_json("--filter", "price", recording)
    assert {row["name"]: (row["samples"], row["total_samples"])
            for row in filtered["functions"]} == {
        "price": (400, 400), "walk": (0, 400), "main": (0, 400), "<module>": (0, 400)}
    assert filtered["sampling"]["samples"] == 400


# ---- states ----

def test_states(recording):
    text = run("--states", recording)
    threads, functions = "\n".join(body(text)).split("\n\n")
    titles = threads.splitlines()[0].split()
    assert titles == ["time", "samples", "python", "c", "gil", "lock", "network", "sleep", "thread"]
    # 450, 100, 200 and 100 of 850; 100 and 50 of 150
    assert threads.splitlines()[1].split() == ["850", "ms", "850", "52.9", "11.8", "23.5", "11.8",
                                               "MainThread", "100"]
    assert threads.splitlines()[2].split() == ["150", "ms", "150", "66.7", "33.3", "worker", "101"]
    price = functions.splitlines()[1]
    assert price.split()[:5] == ["400", "ms", "400", "75.0", "25.0"]
    at = {title: functions.splitlines()[0].index(title) + len(title) for title in titles[:-1]}
    assert price[:at["c"]].endswith("25.0")  # in its column
    assert "<module>" not in functions  # it did nothing itself


def test_states_for_programs(recording):
    page = as_json("--states", recording)
    assert [t["samples"] for t in page["threads"]] == [850, 150]
    assert own(page["functions"][1]["states_ns"]) == {"python": 30, "network": 200}
    rows = as_csv("--states", recording)
    assert [(row["of"], row["name"], row["gil_s"]) for row in rows[:3]] == [
        ("thread", "MainThread", "0.000000000"), ("thread", "worker", "0.100000000"),
        ("function", "price", "0.000000000")]


def test_only_time_on_a_processor(recording):
    page = as_json("--cpu", recording)
    assert page["sampling"]["samples"] == 550
    assert {row["name"]: (row["self_ns"] // 10**6, row["total_ns"] // 10**6)
            for row in page["functions"]} == {
        "price": (400, 400), "walk": (100, 500), "fetch": (30, 30), "main": (20, 550),
        "<module>": (0, 550)}
    text = run("--cpu", recording)
    assert "counting only time spent running Python, running C\n" in text
    assert "  72.7  " in text  # 400 of 550
    assert as_json("--state", "python,c", recording)["functions"] == page["functions"]


def test_only_some_states(recording):
    page = as_json("--state", "lock,sleep", recording)
    assert {row["name"]: row["samples"] for row in page["functions"]} == {
        "main": 100, "work": 50, "<module>": 0}
    assert page["functions"][0]["total_ns"] == 100_000_000
    assert [w["state"] for w in as_json("--state", "lock", "--waits", recording)["waits"]] == [
        "lock"]
    lines = as_json("--cpu", "--hot", "all", recording)["lines"]
    assert [(line["line"], line["samples"], line["total_ns"] // 10**6) for line in lines] == [
        (4, 400, 400), (13, 100, 100), (8, 30, 30), (16, 20, 20)]


# ---- waits ----

def test_waits(recording):
    rows = body(run("--waits", recording))
    assert rows[0].split() == ["time", "%", "samples", "state", "where", "waiting", "for"]
    assert re.split("  +", rows[1].strip()) == [
        "200 ms", "20.0", "200", "network", "/srv/app.py:7", "tcp 127.0.0.1:5000 → 127.0.0.1:6379",
        "fetch"]
    assert re.split("  +", rows[4].strip())[3:] == [
        "lock", "/srv/lib.py:2", "held by MainThread in price, app.py:4", "work"]
    assert "sleeping  main" in rows[2]  # nothing is known but the state


def test_waits_for_programs(recording):
    waits = as_json("--waits", recording)["waits"]
    assert [(w["state"], w["detail"], w["at_line"], w["samples"], w["ns"], w["function"]["name"])
            for w in waits] == [
        ("network", "tcp 127.0.0.1:5000 → 127.0.0.1:6379", 7, 200, 200_000_000, "fetch"),
        ("sleep", "", 19, 100, 100_000_000, "main"),
        ("gil", "held by MainThread", 2, 100, 100_000_000, "work"),
        ("lock", "held by MainThread in price, app.py:4", 2, 50, 50_000_000, "work")]
    assert [row["time_s"] for row in as_csv("--waits", recording)] == [
        "0.200000000", "0.100000000", "0.100000000", "0.050000000"]


def test_waits_restricted(recording):
    assert len(as_json("--waits", "-n", "1", recording)["waits"]) == 1
    assert [w["function"]["name"] for w in as_json("--waits", "-r", "work", recording)["waits"]] == [
        "work", "work"]
    assert "1 of 4 waits" in run("--waits", "-n", "1", recording)
    assert as_json("--waits", "--reverse", recording)["waits"][0]["state"] == "lock"


# ---- spots ----

def test_spots(recording):
    lines = body(run("--spots", recording))
    assert lines[:3] == [
        f" 30.0 % ± {100 * error(300, 1000):.1f}  300 ms  300 samples  price  /srv/app.py:4",
        "        return (x * y) ** 2 + x / (y + 1)",
        "               ^^^^^^^^^^^^"]
    at = next(i for i, line in enumerate(lines) if "näme" in line)
    begin = lines[at].index("lock.acquire()")  # a tab and an umlaut stand before it
    assert lines[at + 1] == " " * begin + "^" * len("lock.acquire()")
    at = lines.index("        time.sleep(1)")
    assert "^" not in lines[at + 1]  # a Python without columns
    second = [line for line in lines if "^" in line][-1]
    assert second.index("^") == lines[1].index("x / (y + 1)")


def test_spots_for_programs(recording):
    spots = as_json("--spots", recording)["spots"]
    assert [(s["at_line"], s["column"], s["end_column"], s["samples"], s["function"]["name"])
            for s in spots] == [(4, 12, 24, 300, "price"), (7, 12, 27, 200, "fetch"),
                                (2, 10, 24, 150, "work"), (19, 0, 0, 100, "main"),
                                (4, 27, 38, 100, "price")]
    assert spots[0]["source"] == "    return (x * y) ** 2 + x / (y + 1)"
    assert as_csv("--spots", recording)[2]["source"] == "        näme = lock.acquire()"


# ---- lines ----

def test_lines(recording):
    rows = body(run("--lines=walk", recording))
    titles = next(line for line in rows if line.startswith("Line #"))
    assert titles.split() == ["Line", "#", "Samples", "Time", "ms", "Self", "ms", "%", "Time",
                              "States", "Line", "Contents"]
    assert "Total time: 500 ms" in rows[0]  # recursion counts once, though its lines overlap
    last = next(line for line in rows if "walk(n - 1)" in line)
    assert last.split()[:7] == ["13", "100", "500.000", "100.000", "100.0", "py", "100"]
    lines = as_json("--lines=price", recording)["functions"][0]["lines"]
    assert lines[0]["samples"] == 400 and own(lines[0]["states_ns"]) == {"python": 300, "c": 100}


def test_hot_lines(recording):
    rows = body(run("--hot", "5", recording))
    assert rows[0].split()[:8] == ["Self", "ms", "%", "Time", "ms", "%", "Samples", "States"]
    assert rows[1].split()[:9] == ["400.000", "40.0", "400.000", "40.0", "400", "py", "75", "·",
                                   "C"]
    assert [row["samples"] for row in as_csv("--hot", "3", recording)] == ["400", "200", "150"]


def test_annotate(recording):
    text = run("--annotate", recording)
    assert "Line #|   Samples|         Time|States       |      %|Source code\n" in text
    assert "     4|       400|          0.4|ppppppCC     | 40.00%|    return (x * y) ** 2" in text


def test_summary_of_lines(recording):
    rows = body(run("--lines", "--summarize", recording))
    assert "Samples" in rows[0]


# ---- what cannot be ----

def test_wrong_use(recording):
    assert "there is no state \"nope\"; there are python, c, gil, lock" in run(
        "--state", "python,nope", recording, status=2)
    assert "--thread does not go with" in run("--waits", "--thread", "100", recording, status=2)
    assert "do not go with --spots" in run("--spots", "--cpu", recording, status=2)
    assert "pstats has no such report" in run("--states", "--pstats", recording, status=2)


def test_recordings_without_samples(tmp_path):
    import cProfile
    profile = cProfile.Profile()
    profile.runcall(sum, [1])
    path = str(tmp_path / "x.prof")
    profile.dump_stats(path)
    for option in ("--states", "--waits", "--spots", "--cpu"):
        assert "holds no samples" in run(option, path, status=12)


def test_merged_recordings_add_up(recording):
    page = as_json(recording, recording)
    by_name = {row["name"]: row for row in page["functions"]}
    assert by_name["walk"]["total_samples"] == 1000 and page["sampling"]["samples"] == 2000
    assert as_json("--waits", recording, recording)["waits"][0]["samples"] == 400
    assert as_json("--spots", recording, recording)["spots"][0]["samples"] == 600


def test_each_merged_run_has_its_own_wall_time(recording, tmp_path):
    """One run took 850 ms, of which watching took 17 ms of a processor: three of them are not watched
    by three times as large a share."""
    for name, files in (("two.fathom", [recording] * 2), ("three.fathom", ["two.fathom", recording])):
        subprocess.run([FATHOM, "merge", *files, "-o", name], cwd=tmp_path, check=True, timeout=300)
    for files, wall, cost in (([recording], "850 ms", "17.0 ms"), ([recording] * 3, "2.550 s", "51.0 ms"),
                              ([tmp_path / "three.fathom"], "2.550 s", "51.0 ms")):
        header = run(*files).split("\n\n")[0]
        assert f" · {wall} wall · " in header
        assert f"took {cost} of processor time (2.0 % of one)" in header


@pytest.fixture
def counted(recording, tmp_path):
    """Calls of two of the functions, as cProfile has them, to be added to the samples."""
    [file] = {row["file"] for row in as_json(recording)["functions"] if row["name"] == "walk"}
    lines = {row["name"]: row["line"] for row in as_json(recording)["functions"]}
    path = tmp_path / "counted.prof"
    path.write_bytes(marshal.dumps({
        # primitive calls, calls, self and total in seconds
        (file, lines["walk"], "walk"): (2, 4, 0.020, 0.100, {}),
        (file, lines["price"], "price"): (4, 4, 0.080, 0.080, {(file, lines["walk"], "walk"): (4, 4, 0.080, 0.080)}),
    }))
    return str(path)


@pytest.mark.parametrize("merged", [False, True], ids=["two files", "merged"])
def test_time_per_call_beside_samples(recording, counted, merged, tmp_path):
    """Only the time of those who counted calls is divided by them: walk took 100 ms in 2 calls, beside
    500 ms of samples."""
    files = [recording, counted]
    if merged:
        subprocess.run([FATHOM, "merge", *files, "-o", tmp_path / "all.fathom"], check=True, timeout=300)
        files = [str(tmp_path / "all.fathom")]
    by_name = {row["name"]: row for row in as_json(*files)["functions"]}
    assert (by_name["walk"]["total_ns"], by_name["walk"]["calls"]) == (600_000_000, 4)
    found = {name: next(row for row in body(run("-n", "all", *files)) if f" {name} " in row + " ")
             for name in ("walk", "price", "fetch")}
    heading = body(run("-n", "all", *files))[0]
    column = slice(heading.rindex("%") + 1, heading.index("per call") + len("per call"))
    assert {name: row[column].strip() for name, row in found.items()} == {
        "walk": "50.0 ms", "price": "20.0 ms", "fetch": ""}
    order = [row["name"] for row in as_json("--sort", "percall", *files)["functions"]]
    assert order[:2] == ["walk", "price"]
    classic = {line.split("(")[-1].rstrip(")"): line.split() for line in run("--pstats", *files).splitlines()
               if line.endswith(("(walk)", "(price)"))}
    assert classic["walk"][:5] == ["4/2", "0.120", "0.005", "0.600", "0.050"]
    assert classic["price"][:5] == ["4", "0.480", "0.020", "0.480", "0.020"]
