"""When the run's folder fills up: the program goes on, what was lost is counted, and with a second
folder nothing is lost. Needs a small file system of its own, so it needs root."""

import os
import subprocess
import textwrap

import pytest
import recordings
from launch import run

CONTEXTS = textwrap.dedent("""
    source = "".join(f"def f{i}(d):\\n  if d: f{(i * 7 + 1) % 97}(d - 1); f{(i * 3 + 2) % 97}(d - 1)\\n"
                     for i in range(97))
    exec(source)
    f0(13)
    print("done")
""")
CALLS = 2**14 - 1  # a binary tree of calls, 14 levels


def mount(folder, size):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
                             capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mount(folder, "400k")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def generated(path):
    return sum(f["calls"] for f in recordings.report(path)["functions"] if f["file"] == "<string>"
               and f["name"] != "<module>")


def profile(python, tmp_path, where, program=CONTEXTS):
    script = tmp_path / "contexts.py"
    script.write_text(program)
    output = tmp_path / "o.fathom"
    done = run("--calls", "--force", script, python=python, output=output,
               env=dict(os.environ, FATHOM_TMPDIR=where))
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    return output


def test_the_second_folder_takes_what_no_longer_fits(python, tmp_path, small):
    big = tmp_path / "big"
    big.mkdir()
    output = profile(python, tmp_path, f"{small}:{big}")
    assert generated(output) == CALLS
    assert recordings.report(output)["notes"] == []
    assert os.listdir(small) == os.listdir(big) == []


def test_without_one_the_loss_is_counted(python, tmp_path, small):
    output = profile(python, tmp_path, str(small))
    notes = recordings.report(output)["notes"]
    assert [note["kind"] for note in notes] == ["lost"]
    kept, lost = generated(output), notes[0]["count"]
    assert 0 < kept < CALLS and kept + lost >= CALLS


# Fills the store, then recurses deeper than a thread's first stack, then calls in a new thread.
DEEP = CONTEXTS.replace('print("done")', "") + textwrap.dedent("""
    import _thread, sys
    sys.setrecursionlimit(10000)
    def leaf(): pass
    def deep(n):
        if n: deep(n - 1)
        leaf()
    deep(3000)
    leaf()
    def in_thread():
        for _ in range(1000): leaf()
        lock.release()
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(in_thread, ())
    lock.acquire()
    print("done")
""")
NOT_COUNTED = "calls that were not counted: the store was full"
NO_CONTEXT = "calls whose own context was not kept: the limit or the memory was exhausted"


def all_calls(path):
    return sum(f["calls"] for f in recordings.report(path)["functions"])


@pytest.mark.parametrize("size", ["300k", "400k", "600k"])
def test_a_full_store_says_how_many_calls_it_did_not_count(python, tmp_path, size):
    """Counted and not counted make up all calls, and nothing is said of returns: each finds its
    call, or that it has none."""
    big, small = tmp_path / "big", tmp_path / "small"
    big.mkdir()
    small.mkdir()
    mount(small, size)
    try:
        everything = all_calls(profile(python, tmp_path, str(big), DEEP))
        output = profile(python, tmp_path, str(small), DEEP)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    lost = {note["text"]: note["count"] for note in recordings.report(output)["notes"]}
    assert set(lost) <= {NOT_COUNTED, NO_CONTEXT} and lost[NOT_COUNTED] > 0, lost
    assert all_calls(output) + lost[NOT_COUNTED] == everything


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))
"""


def test_a_limit_on_the_size_of_files(python, tmp_path):
    """The kernel would end whoever lets a file grow beyond it: the store must not, inside the program."""
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        place.mkdir()
    script, output = tmp_path / "limited.py", tmp_path / "o.fathom"
    script.write_text(LIMITED + CONTEXTS)
    for where in (str(places[0]), ":".join(map(str, places))):
        done = run("--calls", "--force", script, python=python, output=output,
                   env=dict(os.environ, FATHOM_TMPDIR=where))
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        notes = recordings.report(output)["notes"]
        assert [note["kind"] for note in notes] == ["lost"]
        kept, lost = generated(output), notes[0]["count"]
        assert 0 < kept < CALLS and kept + lost >= CALLS
