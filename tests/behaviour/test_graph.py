"""`fathom graph`: the call graph against numbers worked out by hand and against gprof2dot; pictures
with hostile names in them; and what it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import pytest

import live_store
from pstats_tools import fails, fathom, read, write

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"

# Ten seconds: main is 2 s itself, calls work (5 s, of which 1 s in sleep) and idle (3 s).
MAIN, WORK, IDLE = ("/app/a.py", 1, "main"), ("/app/b.py", 9, "work"), ("/lib/c.py", 3, "idle")
SLEEP = ("~", 0, "<built-in method time.sleep>")
TINY = ("/app/b.py", 30, "tiny")
STATS = {MAIN: (1, 1, 1.96, 10.0, {}),
         WORK: (2, 2, 4.0, 5.0, {MAIN: (2, 2, 4.0, 5.0)}),
         IDLE: (1, 1, 3.0, 3.0, {MAIN: (1, 1, 3.0, 3.0)}),
         SLEEP: (7, 7, 1.0, 1.0, {WORK: (6, 6, 0.995, 0.995), MAIN: (1, 1, 0.005, 0.005)}),
         TINY: (4, 4, 0.04, 0.04, {MAIN: (4, 4, 0.04, 0.04)})}


def graph(*args, cwd):
    done = fathom("graph", *args, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done


ATTRIBUTE = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([\w.]+))')


class Dot:
    """A dot file by Fathom or gprof2dot: attributes of nodes and edges, by name of the function."""

    def __init__(self, text: str):
        by_number, edges, self.nodes, self.edges = {}, {}, {}, {}
        for line in text.splitlines():
            edge = re.fullmatch(r"\t(\d+) -> (\d+) \[(.*)\];", line)
            node = re.fullmatch(r"\t(\d+) \[(.*)\];", line)
            if edge:
                edges[edge[1], edge[2]] = self.attributes(edge[3])
            elif node:
                by_number[node[1]] = self.attributes(node[2])
        self.caption = re.search(r'graph \[.*?label="(.*?)"', text)
        for attributes in by_number.values():
            name, *attributes["lines"] = attributes["label"].split("\\n")
            attributes["name"] = name
            assert name not in self.nodes, name
            self.nodes[name] = attributes
        for (caller, callee), attributes in edges.items():
            attributes["lines"] = attributes["label"].split("\\n")
            self.edges[by_number[caller]["name"], by_number[callee]["name"]] = attributes

    @staticmethod
    def attributes(text: str) -> dict:
        return {name: quoted or bare for name, quoted, bare in ATTRIBUTE.findall(text)}


def dot(*args, cwd) -> Dot:
    graph(*args, "-f", "-o", "out.dot", cwd=cwd)
    return Dot((Path(cwd) / "out.dot").read_text(encoding="utf-8"))


def labels(d: Dot) -> tuple[dict, dict]:
    return ({name: node["lines"] for name, node in d.nodes.items()},
            {pair: edge["lines"] for pair, edge in d.edges.items()})


# ---- by hand ----

def test_shares(tmp_path):
    """tiny has 0.4 % and is left out, as is the arrow of 0.05 % from main to sleep."""
    write(tmp_path / "a.prof", STATS)
    d = dot("a.prof", cwd=tmp_path)
    assert labels(d) == (
        {"a:1:main": ["100.00%", "(19.60%)", "1×"], "b:9:work": ["50.00%", "(40.00%)", "2×"],
         "c:3:idle": ["30.00%", "(30.00%)", "1×"],
         "<built-in method time.sleep>": ["10.00%", "(10.00%)", "7×"]},
        {("a:1:main", "b:9:work"): ["50.00%", "2×"], ("a:1:main", "c:3:idle"): ["30.00%", "1×"],
         ("b:9:work", "<built-in method time.sleep>"): ["9.95%", "6×"]})
    assert d.caption[1] == "4 of 5 functions, 10.00 s\\l"
    assert d.nodes["b:9:work"]["tooltip"] == "b:9:work\\n/app/b.py:9\\ntotal 5.000 s, self 4.000 s"
    assert d.edges["a:1:main", "b:9:work"]["penwidth"] == "2.00"  # 4 points by share


def test_thresholds(tmp_path):
    write(tmp_path / "a.prof", STATS)
    d = dot("a.prof", "-n", "0", "-e", "0", cwd=tmp_path)
    assert d.nodes["b:30:tiny"]["lines"] == ["0.40%", "(0.40%)", "4×"]
    assert d.edges["a:1:main", "<built-in method time.sleep>"]["lines"] == ["0.05%", "1×"]
    assert d.caption[1].startswith("5 functions, ")
    d = dot("a.prof", "-n", "30%", "-e", "40", cwd=tmp_path)
    assert set(d.nodes) == {"a:1:main", "b:9:work", "c:3:idle"}
    assert set(d.edges) == {("a:1:main", "b:9:work")}


def test_root_leaf_depth(tmp_path):
    write(tmp_path / "a.prof", STATS)
    sleep = "<built-in method time.sleep>"
    for name in ("work", "b:9:work", "b:*", "*work"):
        assert set(dot("a.prof", "-z", name, cwd=tmp_path).nodes) == {"b:9:work", sleep}
    for name in (sleep, "~:0:*sleep>", "*sleep*"):
        d = dot("a.prof", "--leaf", name, cwd=tmp_path)
        assert set(d.nodes) == {"a:1:main", "b:9:work", sleep}
        assert len(d.edges) == 2
    assert set(dot("a.prof", "-l", sleep, "--depth", "1", cwd=tmp_path).nodes) == {"b:9:work", sleep}
    assert set(dot("a.prof", "-z", "main", "--depth", "1", cwd=tmp_path).nodes) \
        == {"a:1:main", "b:9:work", "c:3:idle"}
    assert set(dot("a.prof", "-z", "main", "-l", "idle", cwd=tmp_path).nodes) \
        == {"a:1:main", "c:3:idle"}


def test_paths(tmp_path):
    write(tmp_path / "a.prof", STATS)
    assert set(dot("a.prof", "-p", "/app", cwd=tmp_path).nodes) == {"a:1:main", "b:9:work"}
    assert set(dot("a.prof", "-p", "/app/a", "--path", "/lib/", cwd=tmp_path).nodes) \
        == {"a:1:main", "c:3:idle"}
    assert "of these paths" in fails(10, "graph", "a.prof", "-p", "/none", "-o", "x.dot",
                                     cwd=tmp_path)


def test_labels(tmp_path):
    write(tmp_path / "a.prof", STATS)
    d = dot("a.prof", "--node-label", "self-time", "--node-label", "total-time", cwd=tmp_path)
    assert d.nodes["b:9:work"]["lines"] == ["5.000 s", "(4.000 s)", "2×"]
    d = dot("a.prof", "--node-label=self-time-percentage", cwd=tmp_path)
    assert d.nodes["b:9:work"]["lines"] == ["(40.00%)", "2×"]


def test_strip_and_wrap(tmp_path):
    names = ["f(int, g(x)) const", "vector<pair<int, a>>::push", "<lambda>", "f.<locals>.g", "odd((x",
             "a_name_of_many_words_that_is_too_long_for_one_line"]
    write(tmp_path / "a.prof", {("", 0, name): (1, 1, 1.0, 1.0, {}) for name in names})
    assert set(dot("a.prof", "-s", cwd=tmp_path).nodes) == {
        "f", "vector::push", "<lambda>", "f.<locals>.g", "odd((x", names[-1]}
    d = dot("a.prof", "-w", "-s", cwd=tmp_path)
    assert d.nodes["a_name_of_many_words_that_is_"]["lines"][0] == "too_long_for_one_line"


def test_colours(tmp_path):
    """By gprof2dot's rule: hue and lightness go from dark blue (0) to red (1)."""
    write(tmp_path / "a.prof", STATS)
    d = dot("a.prof", cwd=tmp_path)
    assert d.nodes["a:1:main"]["color"] == "#ff0000"
    d = dot("a.prof", "--color-nodes-by-selftime", cwd=tmp_path)
    assert d.nodes["b:9:work"]["color"] == "#ff0000"  # the most self time of all
    d = dot("a.prof", "-c", "gray", cwd=tmp_path)
    assert d.nodes["a:1:main"]["color"] == "#000000"
    assert d.nodes["a:1:main"]["fontcolor"] == "#ffffff"
    light = dot("a.prof", "-c", "pink", cwd=tmp_path).nodes["<built-in method time.sleep>"]
    # hsl(0°, 100 %, 86 %) = (1, 0.72, 0.72), to the power of 2.2; white has a contrast of 2.48 on it.
    assert (light["color"], light["fontcolor"]) == ("#ff7c7c", "#202020")
    d = dot("a.prof", "--colormap=print", cwd=tmp_path)
    assert d.nodes["a:1:main"]["fontcolor"] == "#000000"
    assert d.nodes["a:1:main"]["fontsize"] == "30.00"
    assert dot("a.prof", "-c", "temperature", cwd=tmp_path).nodes["a:1:main"]["color"] == "#ff0000"


def test_a_tree_and_its_recursion(tmp_path):
    """main 10 ms → f 8 ms → f 6 ms → sleep 2 ms: of f only the outermost 8 ms count."""
    s = live_store.Store(100, wall_ns=10 * MS)
    main, f = s.function("main", 1, "/a.py"), s.function("f", 9, "/a.py", "C.f")
    sleep = s.function("<built-in method time.sleep>", flags=live_store.C)
    outer = s.node(s.node(s.thread(100), main, 1, 10 * MS), f, 1, 8 * MS)
    s.node(s.node(outer, f, 3, 6 * MS), sleep, 5, 2 * MS)
    s.write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "a.fathom", cwd=tmp_path).returncode == 0
    d = dot("a.fathom", cwd=tmp_path)
    assert labels(d) == (
        {"a:1:main": ["100.00%", "(20.00%)", "1×"], "a:9:C.f": ["80.00%", "(60.00%)", "4×"],
         "<built-in method time.sleep>": ["20.00%", "(20.00%)", "5×"]},
        {("a:1:main", "a:9:C.f"): ["80.00%", "1×"], ("a:9:C.f", "a:9:C.f"): ["60.00%", "3×"],
         ("a:9:C.f", "<built-in method time.sleep>"): ["20.00%", "5×"]})
    assert "the run was cut off" in d.caption[1]


def test_calls_without_times(tmp_path):
    """The `profile` module knows only how often a caller called: it gets its part of the time."""
    write(tmp_path / "a.prof", {MAIN: (1, 1, 1.0, 10.0, {}), IDLE: (1, 1, 1.0, 1.0, {}),
                                WORK: (4, 4, 8.0, 8.0, {MAIN: 3, IDLE: 1})})
    d = dot("a.prof", cwd=tmp_path)
    assert d.edges["a:1:main", "b:9:work"]["lines"] == ["60.00%", "3×"]
    assert d.edges["c:3:idle", "b:9:work"]["lines"] == ["20.00%", "1×"]


def test_no_time_at_all(tmp_path):
    write(tmp_path / "a.prof", {MAIN: (1, 1, 0.0, 0.0, {}),
                                WORK: (4, 4, 0.0, 0.0, {MAIN: (4, 4, 0.0, 0.0)})})
    d = dot("a.prof", cwd=tmp_path)
    assert labels(d) == ({"a:1:main": ["1×"], "b:9:work": ["4×"]},
                         {("a:1:main", "b:9:work"): ["4×"]})


def test_list_functions(tmp_path):
    write(tmp_path / "a.prof", {**STATS, ("/x.py", 1, "a\nb\x1b[31m"): (1, 1, 1.0, 1.0, {})})
    done = fathom("graph", "a.prof", "--list-functions", "+", cwd=tmp_path)
    assert done.returncode == 0 and set(done.stdout.decode().splitlines()) == {
        "a:1:main", "b:9:work", "c:3:idle", "<built-in method time.sleep>", "x:1:a\\nb\\x1b[31m"}
    done = fathom("graph", "a.prof", "--list-functions", "b:*", "-n0", cwd=tmp_path)
    assert done.stdout.decode() == "b:9:work\nb:30:tiny\n"


# ---- two recordings ----

def other_stats() -> dict:
    """work became 2 s slower, idle is gone, fresh is new; main moved by two lines."""
    main, fresh = ("/elsewhere/a.py", 3, "main"), ("/elsewhere/d.py", 1, "fresh")
    return {main: (1, 1, 1.96, 10.0, {}),
            WORK: (3, 3, 6.0, 7.0, {main: (3, 3, 6.0, 7.0)}),
            SLEEP: (7, 7, 1.0, 1.0, {WORK: (7, 7, 1.0, 1.0)}),
            fresh: (1, 1, 1.0, 1.0, {main: (1, 1, 1.0, 1.0)})}


def test_compare(tmp_path):
    write(tmp_path / "a.prof", STATS)
    write(tmp_path / "b.prof", other_stats())
    d = dot("--compare", "a.prof", "b.prof", cwd=tmp_path)
    nodes, edges = labels(d)
    assert nodes == {
        "a:1:main": ["100.00%", "(19.60%)", "1×"],
        "b:9:work": ["50.00% +20.00%", "(40.00% +20.00%)", "2× / 3×"],
        "c:3:idle": ["30.00% −30.00%", "(30.00% −30.00%)", "gone", "1×"],
        "<built-in method time.sleep>": ["10.00%", "(10.00%)", "7×"],
        "d:1:fresh": ["0.00% +10.00%", "(0.00% +10.00%)", "new", "1×"]}
    assert edges["a:1:main", "b:9:work"] == ["50.00% +20.00%", "2× / 3×"]

    def rgb(name):
        colour = d.nodes[name]["color"]
        return tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))
    assert rgb("b:9:work")[0] > rgb("b:9:work")[2]  # red
    assert rgb("c:3:idle")[2] > rgb("c:3:idle")[0]  # blue
    assert len(set(rgb("a:1:main"))) == 1           # grey


def test_compare_options(tmp_path):
    write(tmp_path / "a.prof", STATS)
    write(tmp_path / "b.prof", other_stats())
    d = dot("--compare", "--compare-only-slower", "a.prof", "b.prof", cwd=tmp_path)
    assert d.nodes["c:3:idle"]["lines"][0] == "30.00%"
    assert d.nodes["b:9:work"]["lines"][0] == "50.00% +20.00%"
    d = dot("--compare", "--compare-only-faster", "a.prof", "b.prof", cwd=tmp_path)
    assert d.nodes["c:3:idle"]["lines"][0] == "30.00% −30.00%"
    assert d.nodes["b:9:work"]["lines"][0] == "50.00%"
    d = dot("--compare", "--compare-tolerance", "25", "a.prof", "b.prof", cwd=tmp_path)
    assert d.nodes["b:9:work"]["lines"][0] == "50.00%"
    # Everything took twice as long: by share nothing changed.
    twice = {key: (cc, nc, 2 * tt, 2 * ct, {k: (a, b, 2 * c, 2 * d) for k, (a, b, c, d) in
                                            callers.items()})
             for key, (cc, nc, tt, ct, callers) in STATS.items()}
    write(tmp_path / "c.prof", twice)
    d = dot("--compare", "--compare-by", "share", "a.prof", "c.prof", cwd=tmp_path)
    assert d.nodes["b:9:work"]["lines"][0] == "50.00%"
    d = dot("--compare", "a.prof", "c.prof", cwd=tmp_path)
    assert d.nodes["b:9:work"]["lines"][0] == "50.00% +50.00%"
    for wrong in (["a.prof"], ["a.prof", "b.prof", "c.prof"]):
        assert "two recordings" in fails(2, "graph", "--compare", *wrong, "-o", "x.dot",
                                         cwd=tmp_path)


# ---- a picture each ----

def recording_of_threads(tmp_path) -> None:
    for pid in (100, 200):
        s = live_store.Store(pid, wall_ns=10 * MS, command=f"app {pid}")
        for tid in (pid, pid + 1):
            f = s.function(f"f{tid}", 1, "/a.py")
            s.node(s.thread(tid, name=f"worker \"{tid}\""), f, 1, 5 * MS)
        s.thread(pid + 2)  # did nothing
        s.write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "a.fathom", cwd=tmp_path).returncode == 0


def test_by_thread_and_process(tmp_path):
    recording_of_threads(tmp_path)
    graph("a.fathom", "--by", "thread", "-o", "of-%p-%t.dot", cwd=tmp_path)
    names = [f"of-{pid}-{tid}.dot" for pid in (100, 200) for tid in (pid, pid + 1)]
    assert sorted(path.name for path in tmp_path.glob("*.dot")) == names
    d = Dot((tmp_path / names[1]).read_text())
    assert set(d.nodes) == {"a:1:f101"}
    assert 'thread 101 (worker \\"101\\") of process 100: app 100' in (
        tmp_path / names[1]).read_text()
    graph("a.fathom", "--by=process", "-o", "%n-100%%.svg", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["1-100%.svg", "2-100%.svg"]
    assert "two pictures" in fails(2, "graph", "a.fathom", "--by", "thread", "-o", "x-%p.dot",
                                   cwd=tmp_path)
    assert not list(tmp_path.glob("x-*"))
    assert "no ranks" in fails(12, "graph", "a.fathom", "--by", "rank", "-o", "%n.svg", cwd=tmp_path)


def test_a_picture_of_nothing_is_left_out(tmp_path):
    recording_of_threads(tmp_path)
    done = fathom("graph", "a.fathom", "--by", "thread", "-z", "f101", "-o", "%t.dot", cwd=tmp_path)
    assert done.returncode == 0 and [path.name for path in tmp_path.glob("*.dot")] == ["101.dot"]
    assert done.stderr.count(b"no picture") == 3 and b"thread 200" in done.stderr
    done = fathom("graph", "a.fathom", "--by", "thread", "-z", "g", "-o", "%p-%t.dot",
                  cwd=tmp_path)
    assert done.returncode == 12 and b"no function" in done.stderr


def test_one_thread_or_process(tmp_path):
    recording_of_threads(tmp_path)
    assert set(dot("a.fathom", "--process", "200", cwd=tmp_path).nodes) == {"a:1:f200", "a:1:f201"}
    assert set(dot("a.fathom", "--thread", "101", cwd=tmp_path).nodes) == {"a:1:f101"}
    assert "that thread" in fails(12, "graph", "a.fathom", "--thread", "7", "-o", "x.dot",
                                  cwd=tmp_path)


def test_many_pictures_overwrite_nothing(tmp_path):
    recording_of_threads(tmp_path)
    (tmp_path / "4.dot").write_text("precious")
    assert "not overwritten" in fails(7, "graph", "a.fathom", "--by", "thread", "-o", "%n.dot",
                                      cwd=tmp_path)
    assert [path.name for path in tmp_path.glob("*.dot")] == ["4.dot"]


# ---- hostile names ----

HOSTILE = ["<script>alert(1)</script>", "a\"b'c", "one\ntwo\r\t\x00three\x1b[31m", "&lt;b&gt; &amp; &#60;",
           "back\\slash \\N \\G \\E \\", "<b>html</b>", "\u202eright to left\u2066", "עברית", "x" * 10_000,
           "日本語 é 🎉", "]]>", "--><!--", "\ufffe\uffff", "%s%n", "{a|b}", "", "\ud800"]
# How they must appear in a label: what cannot be shown as Python would write it; a hundred characters
# with the module at most.
SHOWN = ["<script>alert(1)</script>", "a\"b'c", "one\\ntwo\\r\\t\\x00three\\x1b[31m",
         "&lt;b&gt; &amp; &#60;", "back\\slash \\N \\G \\E \\", "<b>html</b>",
         "\\u202eright to left\\u2066", "עברית", "h8:" + "x" * 96 + "…", "日本語 é 🎉", "]]>",
         "--><!--", "\\ufffe\\uffff", "%s%n", "{a|b}", "", "\\ud800"]


@pytest.fixture
def hostile(tmp_path):
    """Each name as a function and as a file, all called by main."""
    main = ("/a.py", 1, "main")
    stats = {main: (1, 1, 1.0, 10.0, {})}
    for i, name in enumerate(HOSTILE):
        stats[f"/h{i}.py", 0, name] = (1, 1, 1.0, 1.0, {main: (1, 1, 1.0, 1.0)})
        stats[name, 1, f"of{i}"] = (1, 1, 1.0, 1.0, {main: (1, 1, 1.0, 1.0)})
    write(tmp_path / "h.prof", stats)
    (tmp_path / "raw.collapsed").write_bytes(b"main;bad \xff\xfe utf-8 <b> 10\nmain 5\n")
    return tmp_path


def texts_of(svg: Path) -> tuple[set, set]:
    """Texts and tooltips of a picture that is well-formed and holds nothing active."""
    data = svg.read_bytes()
    root = ElementTree.fromstring(data)
    assert root.tag == SVG + "svg"
    allowed = {"svg", "g", "title", "polygon", "text", "path", "a", "ellipse", "polyline"}
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in allowed, element.tag
        for attribute in element.attrib:
            assert "href" not in attribute and not attribute.startswith("on"), attribute
    # Namespaces are no links; nothing else may name an address.
    assert not re.search(rb"https?://(?!www\.w3\.org/(2000/svg|1999/xlink)\")", data)
    return ({element.text or "" for element in root.iter(SVG + "text")},
            {element.attrib[TITLE] for element in root.iter(SVG + "a")})


def test_hostile_names_in_svg(hostile):
    graph("h.prof", "-n0", "-o", "h.svg", cwd=hostile)
    texts, tips = texts_of(hostile / "h.svg")
    for i, shown in enumerate(SHOWN):
        want = shown if shown.startswith("h8:") else f"h{i}:{shown}"
        assert want in texts, (want, sorted(t for t in texts if t.startswith(f"h{i}:")))
    tooltip = next(tip for tip in tips if tip.startswith("h4:"))
    assert tooltip.splitlines()[:2] == ["h4:back\\slash \\N \\G \\E \\", "/h4.py"]
    assert any(tip.startswith("h3:&lt;b&gt; &amp; &#60;\n") for tip in tips)
    assert not any(len(tip) > 4000 for tip in tips)
    graph("raw.collapsed", "-o", "raw.svg", cwd=hostile)
    assert "bad \\xff\\xfe utf-8 <b>" in texts_of(hostile / "raw.svg")[0]


def test_hostile_names_in_dot(hostile):
    """Read back by Graphviz itself, every node is there once, with its name as text."""
    graph("h.prof", "-n0", "-o", "h.dot", cwd=hostile)
    text = (hostile / "h.dot").read_text(encoding="utf-8")
    nodes = re.findall(r"^\t\d+ \[.*\];$", text, re.M)
    assert len(nodes) == 1 + 2 * len(HOSTILE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
    for node in nodes:
        rest = ATTRIBUTE.sub("", re.sub(r"^\t\d+ ", "", node))
        assert set(rest) <= set("[], ;"), node  # nothing gets out of its quotes


def pdf_streams(path: Path) -> bytes:
    data, out = path.read_bytes(), b""
    for start in re.finditer(rb"stream\r?\n", data):
        try:
            out += zlib.decompressobj().decompress(data[start.end():])
        except zlib.error:
            continue
    return data + out


def test_hostile_names_in_pdf_and_png(hostile):
    graph("h.prof", "-n0", "-o", "h.pdf", cwd=hostile)
    data = pdf_streams(hostile / "h.pdf")
    assert data.startswith(b"%PDF-")
    assert b"/JavaScript" not in data and b"/URI" not in data and b"/Launch" not in data
    graph("h.prof", "-n0", "-w", "-s", "-o", "h.png", cwd=hostile)
    assert (hostile / "h.png").read_bytes().startswith(b"\x89PNG\r\n")


# ---- pictures ----

def test_svg_says_what_dot_says(tmp_path):
    write(tmp_path / "a.prof", STATS)
    graph("a.prof", "-o", "a.svg", cwd=tmp_path)
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    boxes = {}
    for group in root.iter(SVG + "g"):
        lines = [element.text for element in group.iter(SVG + "text")]
        if group.get("class") == "node":
            boxes[lines[0]] = lines[1:]
    assert boxes == labels(dot("a.prof", cwd=tmp_path))[0]
    arrows = [g for g in root.iter(SVG + "g") if g.get("class") == "edge"]
    assert len(arrows) == 3
    tips = {a.get(TITLE) for g in arrows for a in g.iter(SVG + "a")}
    assert "a:1:main → b:9:work\n5.000 s" in tips


def test_standard_output(tmp_path):
    write(tmp_path / "a.prof", STATS)
    done = fathom("graph", "a.prof", "--to", "svg", "-o", "-", cwd=tmp_path)
    assert done.returncode == 0 and ElementTree.fromstring(done.stdout).tag == SVG + "svg"


def chain(path: Path, functions: int) -> None:
    """Each calls the next; all have all of the time but a little."""
    labels = [("/a.py", i + 1, f"f{i}") for i in range(functions)]
    write(path, {label: (1, 1, 0.0, 1.0, {labels[i - 1]: (1, 1, 0.0, 1.0)} if i else {})
                 for i, label in enumerate(labels)})


def test_too_many_for_a_picture(tmp_path):
    chain(tmp_path / "a.prof", 2500)
    text = fails(10, "graph", "a.prof", "-o", "a.svg", cwd=tmp_path)
    assert "2500 functions" in text and "--max-nodes" in text
    assert not (tmp_path / "a.svg").exists()
    assert len(dot("a.prof", cwd=tmp_path).nodes) == 2500  # a text has no limit
    graph("a.prof", "--root", "f2480", "-o", "a.svg", cwd=tmp_path)
    chain(tmp_path / "b.prof", 120)
    fails(10, "graph", "b.prof", "--max-nodes", "100", "-o", "b.svg", cwd=tmp_path)
    graph("b.prof", "--max-nodes", "all", "-o", "b.svg", cwd=tmp_path)


def test_a_long_picture_in_pixels(tmp_path):
    """A chain so long that its picture would not fit: pixels get larger, nothing is said."""
    chain(tmp_path / "a.prof", 450)
    graph("a.prof", "-o", "a.png", cwd=tmp_path)
    head = (tmp_path / "a.png").read_bytes()[16:24]
    assert 1000 < int.from_bytes(head[4:], "big") <= 32767


def plugin_folder() -> Path | None:
    for folder in Path("/usr").glob("lib*/**/graphviz"):
        if list(folder.glob("config*")):
            return folder
    return None


def test_without_a_plugin(tmp_path):
    """Graphviz as it is without Cairo: its list of plug-ins, shortened."""
    folder = plugin_folder()
    if not folder:
        pytest.skip("Graphviz keeps its list of plug-ins elsewhere")
    config = next(folder.glob("config*"))
    blocks = re.findall(r"^\S+ \S+ \{\n(?:.*\n)*?\}\n", config.read_text(), re.M)
    (tmp_path / "gv").mkdir()
    (tmp_path / "gv" / config.name).write_text("".join(
        block for block in blocks if "plugin_core" in block or "dot_layout" in block))
    for library in folder.glob("libgvplugin_*"):
        (tmp_path / "gv" / library.name).symlink_to(library)
    write(tmp_path / "a.prof", STATS)
    env = {"GVBINDIR": str(tmp_path / "gv")}
    for name in ("a.pdf", "a.png"):
        done = fathom("graph", "a.prof", "-o", name, cwd=tmp_path, env=env)
        assert done.returncode == 12, done
        assert done.stderr.count(b"\n") == 1 and f"writes {name[2:]}".encode() in done.stderr
        assert b"libgvc6" in done.stderr and not (tmp_path / name).exists()
    done = fathom("graph", "a.prof", "-o", "a.svg", cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "none").mkdir()
    done = fathom("graph", "a.prof", "-o", "b.svg", cwd=tmp_path, env={"GVBINDIR": str(tmp_path / "none")})
    assert done.returncode == 12 and done.stderr.count(b"\n") == 1, done
    done = fathom("graph", "a.prof", "-o", "b.dot", cwd=tmp_path, env={"GVBINDIR": str(tmp_path / "none")})
    assert done.returncode == 0  # needs no plug-in


# ---- what it refuses ----

def test_nothing_is_overwritten(tmp_path):
    write(tmp_path / "a.prof", STATS)
    (tmp_path / "a.svg").write_text("precious")
    assert "not overwritten" in fails(7, "graph", "a.prof", "-o", "a.svg", cwd=tmp_path)
    assert (tmp_path / "a.svg").read_text() == "precious"
    graph("a.prof", "--force", "-o", "a.svg", cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["a.prof", "a.svg"]


def test_empty_and_cut_off(tmp_path):
    write(tmp_path / "empty.prof", {})
    assert "no calls" in fails(12, "graph", "empty.prof", "-o", "x.svg", cwd=tmp_path)
    write(tmp_path / "a.prof", {("/a.py", i, "f"): (1, 1, 1.0, 1.0, {}) for i in range(1000)})
    text = fails(10, "graph", "a.prof", "-o", "x.svg", cwd=tmp_path)
    assert "0.5%" in text and "the largest takes 0.1%" in text
    (tmp_path / "cut.prof").write_bytes((tmp_path / "a.prof").read_bytes()[:1000])
    fails(5, "graph", "cut.prof", "-o", "x.svg", cwd=tmp_path)
    (tmp_path / "text").write_text("no recording\n")
    fails(4, "graph", "text", "-o", "x.svg", cwd=tmp_path)
    fails(3, "graph", "none", "-o", "x.svg", cwd=tmp_path)
    assert not (tmp_path / "x.svg").exists()


def test_a_cut_off_recording_says_so(tmp_path):
    write(tmp_path / "a.prof", {("/a.py", i, f"f{i}{os.urandom(20).hex()}"): (1, 1, 1.0, 1.0, {})
                                for i in range(3000)})
    assert fathom("convert", "a.prof", "-o", "a.fathom", cwd=tmp_path).returncode == 0
    data = (tmp_path / "a.fathom").read_bytes()
    (tmp_path / "cut.fathom").write_bytes(data[:len(data) - 20])
    d = dot("cut.fathom", "-n0", cwd=tmp_path)
    assert "ends early" in d.caption[1]


def test_bad_questions(tmp_path):
    write(tmp_path / "a.prof", STATS)

    def refused(status, *args):
        return fails(status, "graph", *args, cwd=tmp_path)
    assert "no function \"none\"" in refused(12, "a.prof", "-z", "none", "-o", "x.svg")
    assert "below the threshold" in refused(10, "a.prof", "-l", "tiny", "-o", "x.svg")
    assert "leads to \"work\" from the root" in refused(10, "a.prof", "-z", "idle", "-l", "work", "-o", "x.svg")
    assert "0 to 100" in refused(2, "a.prof", "-n", "200", "-o", "x.svg")
    assert "0 to 100" in refused(2, "a.prof", "-e", "nan", "-o", "x.svg")
    assert "color, pink, gray" in refused(2, "a.prof", "-c", "mud", "-o", "x.svg")
    assert "does not end in" in refused(2, "a.prof", "-o", "x.xml")
    assert "name the output" in refused(2, "a.prof")
    assert "at least one" in refused(2, "-o", "x.svg")
    assert "--skew" in refused(2, "a.prof", "--skew", "0", "-o", "x.svg")
    assert "does not exist" in refused(8, "a.prof", "-o", "no/where.svg")
    assert "no samples" in refused(12, "a.prof", "--cpu", "-o", "x.svg")
    assert "exclude each other" in refused(2, "a.prof", "a.prof", "--compare-only-slower",
                                           "--compare-only-faster", "-o", "x.svg")
    assert not (tmp_path / "x.svg").exists()


# ---- gprof2dot ----

@pytest.fixture(scope="session")
def gprof2dot():
    """A folder with the module, got once from the package index."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cache / "fathom" / "tests" / "gprof2dot"
    if not (folder / "gprof2dot.py").exists():
        try:
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                                   "--target", str(folder), "gprof2dot"], capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=120)
        except subprocess.TimeoutExpired:
            pytest.skip("the package index does not answer, so there is no gprof2dot")
        if done.returncode != 0:
            pytest.skip("gprof2dot cannot be installed from the package index here")
    return folder


PROGRAM = """
import ast, json, random, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
class Tree:
    def __init__(self, depth): self.children = [Tree(depth - 1) for _ in range(3)] if depth else []
    def walk(self):
        yield self
        for child in self.children: yield from child.walk()
fib(20); [even(50) for _ in range(50)]; sum(1 for _ in Tree(5).walk())
json.loads(json.dumps([{"a": i} for i in range(500)]))
ast.dump(ast.parse(open(json.__file__).read()))
re.compile("|".join("a%db?" % i for i in range(50)))
sorted((random.random() for _ in range(2000)), key=lambda x: -x)
"""


def their_name(key) -> str:
    """Of gprof2dot's own names for a function, and where we leave its ways."""
    file, line, name = key
    if file == "~":
        return name
    base = file.rsplit("/", 1)[-1]
    stem = os.path.splitext(base)[0] if not file.startswith("<") else file
    if stem in ("__init__", "__main__"):
        stem = f"{file.split('/')[-2]}.{stem}"
    return f"{stem}:{line}:{name}"


@pytest.mark.parametrize("options", [[], ["-n", "0", "-e", "0"],
                                     ["-n", "2", "-e", "1", "--color-nodes-by-selftime"],
                                     ["-c", "pink", "--skew", "0.01"], ["-c", "bw"],
                                     ["-c", "print", "-z", "*:fib"]], ids=" ".join)
def test_as_gprof2dot(options, gprof2dot, tmp_path):
    """The same functions, arrows, shares, colours and widths. Calls on an arrow that recurses are
    all calls here, and those that do not recurse there."""
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "cProfile", "-o", "a.prof", "program.py"], cwd=tmp_path,
                   check=True)
    done = subprocess.run([sys.executable, "-m", "gprof2dot", "-f", "pstats", *options, "a.prof"],
                          cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(gprof2dot)},
                          capture_output=True, check=True)
    stats = read(tmp_path / "a.prof")
    renamed = {}
    for key in stats:
        file, line, name = key
        theirs = f"{os.path.basename(os.path.splitext(file)[0])}:{line}:{name}"
        renamed[theirs] = their_name(key)
    theirs, ours = Dot(done.stdout.decode()), dot("a.prof", *options, cwd=tmp_path)
    look = ("color", "fontsize", "penwidth", "arrowsize", "labeldistance")

    def looks(attributes):
        return [attributes.get(name) for name in look]
    assert {name: (node["lines"], looks(node)) for name, node in ours.nodes.items()} == \
        {renamed[name]: (node["lines"], looks(node)) for name, node in theirs.nodes.items()}
    expected = {(renamed[a], renamed[b]): (edge["lines"][0], looks(edge))
                for (a, b), edge in theirs.edges.items()}
    assert {pair: (edge["lines"][0], looks(edge)) for pair, edge in ours.edges.items()} == expected
    calls = {(their_name(caller), their_name(key)): f"{numbers[0]}×"
             for key, row in stats.items() for caller, numbers in row[4].items()}
    assert all(edge["lines"][1] == calls[pair] for pair, edge in ours.edges.items())
    assert expected
