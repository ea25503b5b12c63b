"""The rules of ARCHITECTURE.md that a program can check: who may include whom, and the shape of
files."""

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SRC = REPO / "src"

# folder: the folders it may include from, besides its own and base
MAY_USE = {
    "base": set(),
    "watch/os": set(),
    "watch/store": {"watch/os", "record/capture"},
    "watch/memory": {"watch/os", "record/capture", "record/model"},
    "watch/trace": {"watch/os", "watch/store", "record/capture", "record/model"},
    "watch/cpython": {"watch/os"},
    "watch/sampler": {"watch/os", "watch/store", "watch/cpython", "record/model"},
    "record/capture": set(),
    "record/model": {"record/capture"},
    "record/formats": {"record/capture", "record/model"},
    "show/report": {"record/model"},
    "show/graph": {"record/model", "record/formats", "show/report"},
    "show/plot": {"record/model", "show/report"},
    "show/view": {"record/model", "show/report"},
    "show/top": {"record/model", "show/report", "watch/sampler"},
    "commands": {"watch/os", "watch/memory", "watch/trace", "watch/cpython", "watch/sampler", "record/capture", "record/model",
                 "record/formats", "show/report", "show/graph", "show/plot", "show/view", "show/top"},
    "target/library": {"record/model", "record/formats"},
    "target/agent": {"record/capture"},
    "target/heap": {"record/capture"},
    "target/notify": set(),
    "target/preload": set(),
}
WITHOUT_BASE = {"target/notify", "target/preload"}
# Single headers that cross a border on purpose.
EXCEPTIONS = {
    ("target/library/library.c", "target/agent/bridge_abi.h"),  # what it exports, as the agent sees it
    ("target/agent/heap.c", "target/heap/layout.h"),  # what it tells the heap library
    ("watch/sampler/open_regions.h", "record/capture/live.h"),  # where a program keeps the regions that its threads are in
    ("target/agent/lines/line_memory.h", "target/heap/layout.h"),  # … and what that tells it
}
# What runs in a program may take from a folder: the layout of its store, not the reader of files.
TARGET_CAPTURE = {"target/agent": {"record/capture/live.h", "record/capture/live_trace.h"}, "target/heap": {"record/capture/live_heap.h", "record/capture/live_events.h"}}


def folder_of(name):
    """Of a file or an include, as MAY_USE has it."""
    parts = name.split("/")
    return parts[0] if parts[0] in ("base", "commands") else "/".join(parts[:2])


def includes(path):
    return re.findall(r'^#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def sources():
    return [p for p in sorted(SRC.rglob("*.[ch]")) if p.parent != SRC]


def test_every_folder_is_in_the_list():
    assert {folder_of(p.relative_to(SRC).as_posix()) for p in sources()} == set(MAY_USE)


def test_no_forbidden_include():
    forbidden = []
    for path in sources():
        name = path.relative_to(SRC).as_posix()
        folder = folder_of(name)
        may = MAY_USE[folder] | {folder} | ({"base"} - ({"base"} if folder in WITHOUT_BASE else set()))
        for include in includes(path):
            allowed = folder_of(include) in may or (name, include) in EXCEPTIONS
            if folder in TARGET_CAPTURE and folder_of(include) == "record/capture":
                allowed = include in TARGET_CAPTURE[folder]
            if not allowed:
                forbidden.append(f"{name} includes {include}")
    assert forbidden == []


def test_python_h_lives_in_one_place():
    users = [p.relative_to(SRC).as_posix() for p in sources() if "<Python.h>" in p.read_text()]
    assert users == ["target/agent/python.h"]


def test_versions_of_python_are_compared_in_one_place():
    users = [p.relative_to(SRC).as_posix() for p in sources()
             if re.search(r"PY_(VERSION_HEX|MINOR_VERSION)\s*[<>=]", p.read_text())]
    assert users == ["target/agent/python.h"]


def test_layouts_of_python_are_told_apart_in_one_folder():
    users = {p.parent.relative_to(SRC).as_posix() for p in sources() if "fm_layout_minor" in p.read_text()}
    assert users == {"watch/cpython"}


def test_every_c_file_says_what_it_owns():
    silent = [p.relative_to(SRC).as_posix() for p in sources() if not p.read_text().startswith("/*")]
    assert silent == []


def test_every_header_is_guarded():
    bare = [p.relative_to(SRC).as_posix() for p in SRC.rglob("*.h")
            if not re.search(r"#ifndef FM_\w+_H\n#define FM_\w+_H", p.read_text())]
    assert bare == []


def test_no_two_types_share_a_name():
    """A name says what it is wherever one reads it; within one file there may be variants of one type."""
    files = {}
    for path in [*SRC.rglob("*.[ch]"), *(REPO / "viewer" / "engine").rglob("*.[ch]")]:
        for name in re.findall(r"^(?:static |const |typedef )*((?:struct|union|enum) \w+) \{", path.read_text(), re.M):
            files.setdefault(name, set()).add(path.relative_to(REPO).as_posix())
    assert {name: sorted(where) for name, where in files.items() if len(where) > 1} == {}


def test_no_path_of_a_machine_is_in_the_tree():
    places = []
    for path in [*SRC.rglob("*"), *(REPO / "docs").rglob("*"), *(REPO / "tools").rglob("*"),
                 *(REPO / "python").rglob("*.py")]:
        if path.is_file() and re.search(r"/(work|root)/", path.read_text(errors="replace")):
            places.append(str(path.relative_to(REPO)))
    assert places == []
