"""`fathom convert` and `fathom merge`: what they write, and what they refuse to touch."""

from __future__ import annotations

import os
import resource
import subprocess

import pytest

import live_store
from pstats_tools import FATHOM, INTERPRETERS, fails, fathom, python, read, report, same_numbers, \
    table, write

MS = 1_000_000
STATS = {("/a.py", 1, "main"): (1, 1, 0.25, 1.0, {}),
         ("/a.py", 9, "f"): (2, 5, 0.5, 0.75, {("/a.py", 1, "main"): (2, 2, 0.25, 0.75),
                                               ("/a.py", 9, "f"): (3, 1, 0.25, 0.5)}),
         ("~", 0, "<built-in method time.sleep>"): (1, 1, 0.25, 0.25,
                                                    {("/a.py", 9, "f"): (1, 1, 0.25, 0.25)})}


def converts(*args, cwd):
    done = fathom("convert", *args, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done


def store(pid=100, **options) -> live_store.Store:
    s = live_store.Store(pid, wall_ns=10 * MS, **options)
    main = s.function("main", 1, "/a.py")
    f = s.function("f", 9, "/a.py", "C.f")
    sleep = s.function("<built-in method time.sleep>", flags=live_store.C)
    node = s.node(s.thread(pid), main, 1, 8 * MS)
    s.node(s.node(node, f, 3, 5 * MS), sleep, 3, 2 * MS)
    return s


@pytest.mark.parametrize("name", ["out.pstats", "out.prof", "out.pstat", "out.profile"])
def test_the_name_tells_the_format(name, tmp_path):
    write(tmp_path / "a.prof", STATS)
    converts("a.prof", "-o", name, cwd=tmp_path)
    assert read(tmp_path / name) == STATS


def test_to_tells_the_format(tmp_path):
    write(tmp_path / "a.prof", STATS)
    converts("a.prof", "-o", "x", "--to", "fathom", cwd=tmp_path)
    converts("x", "-o", "y", "--to", "pstats", cwd=tmp_path)
    assert read(tmp_path / "y") == STATS
    assert "no format" in fails(2, "convert", "a.prof", "-o", "z", "--to", "xml", cwd=tmp_path)
    assert "tells no format" in fails(2, "convert", "a.prof", "-o", "z", cwd=tmp_path)
    assert not (tmp_path / "z").exists()


def test_a_tree_as_pstats(tmp_path):
    """By hand: (cc, nc, self, total, callers)."""
    store().write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "a.fathom", cwd=tmp_path).returncode == 0
    converts("a.fathom", "-o", "a.prof", cwd=tmp_path)
    main, f, sleep = ("/a.py", 1, "main"), ("/a.py", 9, "f"), ("~", 0, "<built-in method time.sleep>")
    same_numbers(read(tmp_path / "a.prof"), {
        main: (1, 1, 0.003, 0.008, {}),
        f: (3, 3, 0.003, 0.005, {main: (3, 3, 0.003, 0.005)}),
        sleep: (3, 3, 0.002, 0.002, {f: (3, 3, 0.002, 0.002)})})


@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_python_loads_it(version, tmp_path):
    stats = {**STATS, ("/é.py", 3, "λ"): (2**40, 2**41, 1e-9, 3.0, {})}
    write(tmp_path / "a.prof", stats)
    converts("a.prof", "-o", "b.prof", cwd=tmp_path)
    assert python(version, "import marshal; print(sorted(marshal.load(open('b.prof', 'rb'))"
                           ".items()) == sorted(marshal.load(open('a.prof', 'rb')).items()))",
                  cwd=tmp_path) == "True\n"


ADD = "import pstats, sys; pstats.Stats(*sys.argv[2:]).dump_stats(sys.argv[1])"


@pytest.mark.parametrize("version", INTERPRETERS)
def test_adds_up_as_pstats_does(version, tmp_path):
    other = {("/a.py", 9, "f"): (1, 1, 0.125, 0.125, {("/b.py", 1, "g"): (1, 1, 0.125, 0.125),
                                                      ("/a.py", 9, "f"): (1, 0, 0.0, 0.0)}),
             ("/b.py", 1, "g"): (1, 1, 0.5, 0.625, {})}
    write(tmp_path / "a.prof", STATS)
    write(tmp_path / "b.prof", other)
    python(version, ADD, "theirs.prof", "a.prof", "b.prof", "a.prof", cwd=tmp_path)
    converts("a.prof", "b.prof", "a.prof", "-o", "ours.prof", cwd=tmp_path)
    ours, theirs = read(tmp_path / "ours.prof"), read(tmp_path / "theirs.prof")
    same_numbers(ours, theirs)
    assert list(ours) == list(theirs)


# ---- nothing is lost ----

def test_nothing_is_overwritten(tmp_path):
    write(tmp_path / "a.prof", STATS)
    (tmp_path / "out.fathom").write_bytes(b"precious")
    for verb in ("convert", "merge"):
        assert "is not overwritten" in fails(7, verb, "a.prof", "-o", "out.fathom", cwd=tmp_path)
        assert (tmp_path / "out.fathom").read_bytes() == b"precious"
    converts("a.prof", "-o", "out.fathom", "--force", cwd=tmp_path)
    assert table("out.fathom", cwd=tmp_path)["calls"] == 7
    assert sorted(os.listdir(tmp_path)) == ["a.prof", "out.fathom"]


def test_onto_itself(tmp_path):
    write(tmp_path / "a.prof", STATS)
    converts("a.prof", "a.prof", "-o", "a.prof", "--force", cwd=tmp_path)
    assert read(tmp_path / "a.prof")[("/a.py", 9, "f")][:2] == (4, 10)


def test_a_link_stays_a_link(tmp_path):
    write(tmp_path / "a.prof", STATS)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real.prof").write_bytes(b"old")
    (tmp_path / "link.prof").symlink_to("deep/real.prof")
    converts("a.prof", "-o", "link.prof", "-f", cwd=tmp_path)
    assert (tmp_path / "link.prof").is_symlink()
    assert read(tmp_path / "deep" / "real.prof") == STATS


def test_a_new_file_is_its_owners_alone(tmp_path):
    write(tmp_path / "a.prof", STATS)
    old = os.umask(0o027)
    try:
        converts("a.prof", "-o", "b.prof", cwd=tmp_path)
    finally:
        os.umask(old)
    assert (tmp_path / "b.prof").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["out.fathom", "out.prof"])
def test_a_full_disk_leaves_nothing(name, tmp_path):
    """A limit on the size of files stands for the full disk: writing fails part of the way."""
    write(tmp_path / "a.prof", {(f"/file{i}.py", i, os.urandom(40).hex()): (1, 1, 0.5, 0.5, {})
                                for i in range(5000)})
    (tmp_path / "old.prof").write_bytes(b"precious")

    def limit():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    done = subprocess.run([FATHOM, "convert", "a.prof", "-o", name], cwd=tmp_path,
                          preexec_fn=limit, capture_output=True)
    assert done.returncode == 8, done
    assert done.stderr.count(b"\n") == 1 and name.encode() in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.prof", "old.prof"]
    done = subprocess.run([FATHOM, "convert", "a.prof", "-o", "old.prof", "--force"], cwd=tmp_path,
                          preexec_fn=limit, capture_output=True)
    assert done.returncode == 8
    assert (tmp_path / "old.prof").read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["a.prof", "old.prof"]


def test_devices(tmp_path):
    write(tmp_path / "a.prof", STATS)
    done = fathom("convert", "a.prof", "-o", "-", "--to", "pstats", cwd=tmp_path)
    write(tmp_path / "b.prof", {})
    (tmp_path / "b.prof").write_bytes(done.stdout)
    assert read(tmp_path / "b.prof") == STATS
    assert "No space left" in fails(8, "convert", "a.prof", "-o", "/dev/full", "--to", "pstats",
                                    cwd=tmp_path)


def test_bad_places(tmp_path):
    write(tmp_path / "a.prof", STATS)
    assert "does not exist" in fails(8, "convert", "a.prof", "-o", "no/where.prof", cwd=tmp_path)
    (tmp_path / "dir.prof").mkdir()
    assert "is a folder" in fails(8, "convert", "a.prof", "-o", "dir.prof", cwd=tmp_path)
    assert "name the output" in fails(2, "convert", "a.prof", cwd=tmp_path)
    assert "at least one" in fails(2, "convert", "-o", "x.prof", cwd=tmp_path)
    assert "does not exist" in fails(3, "convert", "none", "-o", "x.prof", cwd=tmp_path)
    assert not (tmp_path / "x.prof").exists()


# ---- merge ----

def test_merge_keeps_processes_apart(tmp_path):
    for pid in (100, 200):
        store(pid, command=f"run {pid}").write(tmp_path / f"live{pid}")
        assert fathom("merge", f"live{pid}", "-o", f"{pid}.fathom", cwd=tmp_path).returncode == 0
    assert fathom("merge", "100.fathom", "200.fathom", "-o", "all.fathom",
                  cwd=tmp_path).returncode == 0
    assert [p["process"] for p in table("all.fathom", "--processes", cwd=tmp_path)["processes"]] \
        == [100, 200]
    data = {r["qualname"]: r for r in table("all.fathom", cwd=tmp_path)["functions"]}
    assert (data["C.f"]["calls"], data["C.f"]["total_ns"]) == (6, 10 * MS)
    one = {r["qualname"]: r for r in
           table("all.fathom", "--process", "200", cwd=tmp_path)["functions"]}
    assert one["C.f"]["calls"] == 3


def test_merge_pstats_files(tmp_path):
    write(tmp_path / "a.prof", STATS)
    assert fathom("merge", "a.prof", "a.prof", "-o", "all.fathom", cwd=tmp_path).returncode == 0
    converts("all.fathom", "-o", "all.prof", cwd=tmp_path)
    assert read(tmp_path / "all.prof")[("/a.py", 9, "f")][:2] == (4, 10)
    assert "foreign format" in fails(2, "merge", "a.prof", "-o", "b.prof", cwd=tmp_path)


def test_merge_a_folder(tmp_path):
    """In order of process id and number; what cannot be read is named, the rest is kept."""
    folder = tmp_path / "live"
    store(1000).write(folder)
    store(99).write(folder, 0)
    store(99, command="exec'd").write(folder, 1)
    (folder / "500.0.live").write_bytes(b"garbage" * 1000)
    (folder / "600.0.live").write_bytes(b"")
    (folder / "unrelated.txt").write_text("x")
    (folder / "700.0.unprofiled").write_text("exe=/x=y\ncommand=old\nreason=because\n")
    assert fathom("merge", "live", "-o", "all.fathom", cwd=tmp_path).returncode == 0
    data = table("all.fathom", "--processes", cwd=tmp_path)
    assert [(p["process"], p["command"], p["profiled"]) for p in data["processes"]] == [
        (99, "app.py", True), (99, "exec'd", True), (700, "old", False), (1000, "app.py", True)]
    assert data["processes"][2]["executable"] == "/x=y"
    notes = {n["kind"]: n for n in data["notes"]}
    assert "because" in notes["unprofiled"]["text"] and notes["unprofiled"]["process"] == 700
    lost = [n["text"] for n in data["notes"] if n["kind"] == "lost"]
    assert any("process 500" in t for t in lost)
    assert "process 600 ended before anything of it was recorded" in [n["text"] for n in data["notes"]]
    assert "recovered" in notes


@pytest.mark.parametrize("place", ["more", "."])
def test_more_chunks_in_a_second_file(place, tmp_path):
    """When the first file could not grow, chunks go on in PID.N.live.more, in the folder that the
    link "more" names, or beside."""
    folder = tmp_path / "live"
    whole = store(100).bytes()
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    if place == "more":
        (folder / "more").symlink_to(tmp_path / "elsewhere")
    cut = live_store.PAGE * 2
    (folder / "100.0.live").write_bytes(whole[:cut])
    (folder / place / "100.0.live.more").write_bytes(whole[cut:])
    assert fathom("merge", "live", "-o", "all.fathom", cwd=tmp_path).returncode == 0
    data = {r["qualname"]: r for r in table("all.fathom", cwd=tmp_path)["functions"]}
    assert (data["C.f"]["calls"], data["C.f"]["total_ns"]) == (3, 5 * MS)


def test_merge_refuses(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no live stores" in fails(4, "merge", "empty", "-o", "x.fathom", cwd=tmp_path)
    assert "does not exist" in fails(3, "merge", "none", "-o", "x.fathom", cwd=tmp_path)
    write(tmp_path / "a.prof", STATS)
    assert "does not exist" in fails(3, "merge", "a.prof", "none", "-o", "x.fathom", cwd=tmp_path)
    assert "name the output" in fails(2, "merge", "a.prof", cwd=tmp_path)
    assert not (tmp_path / "x.fathom").exists()


def test_report_after_merge_says_it_was_recovered(tmp_path):
    store().write(tmp_path / "live")
    assert fathom("merge", "live", "-o", "a.fathom", cwd=tmp_path).returncode == 0
    assert "recovered: the run was cut off" in report("a.fathom", cwd=tmp_path)
