"""Where the heap store lies when there is little room: a small /dev/shm, a full one, or a group that may have little memory.
Needs small file systems and groups of its own, so it needs root."""

import os
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import groups
import launch
import pytest
import recordings
from conftest import PACKAGE

# A binary tree of calls, 14 levels, in contexts of their own; each keeps 1,000 bytes. Then it says what is where.
CONTEXTS = textwrap.dedent("""
    import os, sys
    keep = [None] * 2**14
    keep.clear()
    exec("".join(f"def f{i}(d):\\n  keep.append(bytes(1000))\\n"
                 f"  if d: f{(i * 7 + 1) % 97}(d - 1); f{(i * 3 + 2) % 97}(d - 1)\\n" for i in range(97)))
    f0(13)
    for parent in sys.argv[1:]:
        for folder, _, names in os.walk(parent):
            print(*(f"{name[name.rindex('.0.') + 3:]}={os.stat(os.path.join(folder, name)).st_size}"
                    for name in names if ".0." in name))
    print("done", flush=True)
    if os.environ.get("WAIT"):
        sys.stdin.read()
""")
KEPT = (2**14 - 1) * (1000 + 33)  # a bytes object has a head of 33
LIST = 8 * 2**14 * 2.2  # what the list itself took when it grew, old and new

HEADER = 16384  # bytes of a store's header


def mount(folder, size):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
                             capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    return folder


@pytest.fixture
def room(tmp_path):
    """Makes a folder with so much room."""
    made = []

    def make(name, size):
        made.append(mount(tmp_path / name, size))
        return made[-1]

    yield make
    for folder in made:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "contexts.py"
    path.write_text(CONTEXTS)
    return path


def record(python, app, *folders, words=()):
    """What the program printed, and the report."""
    output = app.parent / "o.fathom"
    done = launch.run("--force", app, *folders, python=python, output=output, collectors=("--memory",),
                      env=dict(os.environ, FATHOM_TMPDIR=":".join(map(str, folders))))
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done
    sizes = {}
    for pair in done.stdout.split()[:-1]:
        name, size = pair.split("=")
        sizes[name] = int(size)
    for folder in folders:
        assert [name for name in os.listdir(folder) if name.startswith("fathom-")] == []
    return sizes, recordings.report(output, "--memory")


def kept(report):
    return sum(row["peak_bytes"] for row in report["functions"] if row["file"] == "<string>")


def test_a_part_of_a_small_file_system_stays_the_programs(python, app, room):
    small, big = room("small", "2m"), app.parent / "big"
    big.mkdir()
    sizes, report = record(python, app, small, big)
    assert KEPT <= kept(report) <= KEPT + LIST
    assert report["notes"] == []
    assert sizes["heap.more"] > 0
    assert sizes["heap"] + sizes["live"] <= 3 * 2**19  # three quarters of 2 MiB


def test_a_full_one_has_not_even_the_header(python, app, room):
    small, big = room("small", "1m"), app.parent / "big"
    big.mkdir()
    filler = os.open(small / "filler", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(filler, bytes(4096))
    os.close(filler)
    sizes, report = record(python, app, small, big)
    assert KEPT <= kept(report) <= KEPT + LIST
    assert sizes["heap"] == 0 and sizes["heap.more"] > HEADER
    assert report["memory"]["peak_bytes"] > KEPT


def test_without_any_room_the_program_goes_on_and_the_loss_is_said(python, app, room):
    small, other = room("small", "600k"), room("other", "400k")
    _, report = record(python, app, small, other)
    notes = {note["kind"]: note for note in report["notes"]}
    assert set(notes) == {"lost"} and notes["lost"]["count"] > 1000
    assert kept(report) < KEPT
    # What has no context of its own is counted all the same.
    assert report["memory"]["peak_bytes"] >= KEPT


@pytest.mark.parametrize("then", ["merge", "clear"])
def test_a_run_that_was_cut_off_is_merged_or_removed(python, app, room, then):
    """The launcher is killed: `fathom doctor` sees both folders, `fathom merge` reads both."""
    small, big = room("small", "2m"), app.parent / "big"
    big.mkdir()
    environ = dict(os.environ, FATHOM_TMPDIR=f"{small}:{big}", WAIT="1")
    output = app.parent / "o.fathom"
    with subprocess.Popen([launch.FATHOM, "run", "--memory", "-q", "--python", python, "-o", output, app],
                          env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "done\n"
        running.send_signal(signal.SIGKILL)
        running.wait()
        told = launch.fathom("doctor", env=environ).stdout
        assert str(small) in told
        running.stdin.close()
        folder, = small.glob("fathom-*")
        store, = folder.glob("*.heap")
        pid = int(store.name.split(".")[0])
        for _ in range(500):
            if not Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.01)
    if then == "merge":
        merged = app.parent / "merged.fathom"
        done = launch.fathom("merge", folder, "-o", merged)
        assert KEPT <= kept(recordings.report(merged, "--memory")) <= KEPT + LIST
    else:
        done = launch.fathom("doctor", "--clear", env=environ)
        assert list(small.glob("fathom-*")) == list(big.glob("fathom-*")) == [], done.stdout
    assert done.returncode == 0, done.stderr


def test_where_memory_is_scarce_the_store_is_on_disk(python, app, room):
    roomy, disk = room("roomy", "200m"), app.parent / "disk"
    disk.mkdir()
    output = app.parent / "o.fathom"
    done = groups.run(1 << 30, launch.FATHOM, "run", "--memory", "-q", "--python", python, "-o", output, app, roomy, disk,
                      env=dict(os.environ, FATHOM_TMPDIR=f"{roomy}:{disk}"))
    assert done.returncode == 0, done.stderr
    assert f"heap={HEADER}" in done.stdout and "heap.more=" in done.stdout
    assert KEPT <= kept(recordings.report(output, "--memory")) <= KEPT + LIST


def test_who_reads_a_running_store_reads_both_files(python, app, room):
    """fathom.memory_snapshot() in the program itself."""
    small, big = room("small", "2m"), app.parent / "big"
    big.mkdir()
    app.write_text(CONTEXTS + "import fathom; print(sum(line.bytes for line in fathom.memory_snapshot().lines()\n"
                              "    if line.file == '<string>'))")
    output = app.parent / "o.fathom"
    done = launch.run(app, python=python, output=output, collectors=("--memory",),
                      env=dict(os.environ, FATHOM_TMPDIR=f"{small}:{big}", PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr
    assert KEPT <= int(done.stdout.split()[-1]) <= KEPT + LIST
