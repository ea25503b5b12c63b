"""The rules of ARCHITECTURE.md that a program can check: who may include whom, and the shape of
files."""

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SRC = REPO / "src"

# folder: the folders it may include from, besides its own
MAY_USE = {
    "base": set(),
    "os": {"base"},
    "cpython": {"base", "os"},
    "capture": {"base"},
    "model": {"base", "capture"},
    "formats": {"base", "capture", "model"},
    "report": {"base", "model"},
    "sampler": {"base", "os", "cpython", "model"},
    "graph": {"base", "model", "formats", "report"},
    "view": {"base", "model", "report"},
    "top": {"base", "model", "report", "sampler"},
    "commands": {"base", "os", "cpython", "capture", "model", "formats", "report", "sampler", "top", "graph", "view"},
    "library": {"base", "model", "formats"},
    "agent": {"base", "capture"},
    "preload": set(),
}
# Single headers that cross a border on purpose.
EXCEPTIONS = {
    ("formats/formats.c", "os/output.h"),  # files that appear whole or not at all
    ("view/onefile.c", "os/output.h"),  # the same
    ("graph/render.c", "os/library.h"),  # loads Graphviz when it is needed
    ("view/server.c", "os/library.h"),  # the same for the HTTP server
    ("library/library.c", "agent/bridge_abi.h"),  # the functions it exports, as the agent sees them
}
# What the agent may take from a folder: the layout of the live store, not the reader of files.
AGENT_CAPTURE = {"capture/live.h"}


def includes(path):
    return re.findall(r'^#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def sources():
    return [p for p in sorted(SRC.rglob("*.[ch]")) if p.parent != SRC]


def test_every_folder_is_in_the_list():
    assert {p.name for p in SRC.iterdir() if p.is_dir() and list(p.glob("*.[ch]"))} <= set(MAY_USE)


def test_no_forbidden_include():
    forbidden = []
    for path in sources():
        name = path.relative_to(SRC).as_posix()
        folder = name.split("/")[0]
        for include in includes(path):
            other = include.split("/")[0]
            allowed = other == folder or other in MAY_USE[folder] or (name, include) in EXCEPTIONS
            if folder == "agent" and other == "capture":
                allowed = include in AGENT_CAPTURE
            if not allowed:
                forbidden.append(f"{name} includes {include}")
    assert forbidden == []


def test_python_h_lives_in_one_place():
    users = [p.relative_to(SRC).as_posix() for p in sources() if "<Python.h>" in p.read_text()]
    assert users == ["agent/python.h"]


def test_versions_of_python_are_compared_in_one_place():
    users = [p.relative_to(SRC).as_posix() for p in sources()
             if re.search(r"PY_(VERSION_HEX|MINOR_VERSION)\s*[<>=]", p.read_text())]
    assert users == ["agent/python.h"]


def test_layouts_of_python_are_told_apart_in_one_folder():
    users = {p.parent.name for p in sources() if "fm_layout_minor" in p.read_text()}
    assert users == {"cpython"}


def test_every_c_file_says_what_it_owns():
    silent = [p.relative_to(SRC).as_posix() for p in sources() if not p.read_text().startswith("/*")]
    assert silent == []


def test_every_header_is_guarded():
    bare = [p.relative_to(SRC).as_posix() for p in SRC.rglob("*.h")
            if not re.search(r"#ifndef FM_\w+_H\n#define FM_\w+_H", p.read_text())]
    assert bare == []


def test_no_path_of_a_machine_is_in_the_tree():
    places = []
    for path in [*SRC.rglob("*"), *(REPO / "docs").rglob("*"), *(REPO / "tools").rglob("*"),
                 *(REPO / "python").rglob("*.py")]:
        if path.is_file() and re.search(r"/(work|root)/", path.read_text(errors="replace")):
            places.append(str(path.relative_to(REPO)))
    assert places == []
