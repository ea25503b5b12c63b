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


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)],
                             capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def generated(path):
    return sum(f["calls"] for f in recordings.report(path)["functions"] if f["file"] == "<string>"
               and f["name"] != "<module>")


def profile(python, tmp_path, where):
    script = tmp_path / "contexts.py"
    script.write_text(CONTEXTS)
    output = tmp_path / "o.fathom"
    done = run("--calls", script, python=python, output=output,
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
