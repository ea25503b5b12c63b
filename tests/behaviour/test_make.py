"""`make` notices Pythons that came or went since the build was configured: each gets its agent, or has one no more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pythons

REPO = Path(__file__).resolve().parents[2]
INTERPRETERS = pythons.interpreters()

# Stands in for meson: does what python/fathom/meson.build does, and notes that it was called.
MESON = """#!/bin/sh
for folder; do :; done
mkdir -p "$folder" && touch "$folder/build.ninja"
tools/agent-targets --keep "$folder/agent-targets.txt" > /dev/null
echo "meson $*" >> "$CALLS"
"""
NINJA = """#!/bin/sh
echo ninja >> "$CALLS"
"""


@pytest.fixture
def machine(tmp_path):
    """A machine with one Python, to which another can be added in pyenv; what `make` calls there."""
    for name, text in (("meson", MESON), ("ninja", NINJA)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path / "pyenv"),
           "FATHOM_PYTHONS_CACHE": str(tmp_path / "cache"), "CALLS": str(tmp_path / "calls")}

    def make():
        (tmp_path / "calls").write_text("")
        done = subprocess.run(["make", "all", f"BUILD={tmp_path / 'build'}", "-o", "needs-build"], cwd=REPO,
                              env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        kept = (tmp_path / "build" / "agent-targets.txt").read_text().splitlines()[1:]
        return (tmp_path / "calls").read_text().splitlines(), [line.split("\t")[0].split("-")[1] for line in kept]

    def add(path):
        folder = Path(os.path.realpath(path)).parents[1]
        (tmp_path / "pyenv" / "versions").mkdir(parents=True, exist_ok=True)
        (tmp_path / "pyenv" / "versions" / folder.name).symlink_to(folder)

    return make, add, tmp_path


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_a_python_that_appears_later_gets_an_agent(machine):
    make, add, folder = machine
    later = next((path for version, path in reversed(INTERPRETERS.items())
                  if os.path.realpath(path) != os.path.realpath(sys.executable)
                  and Path(path).name == f"python{version}"
                  and subprocess.run([path, "-c", "import os, sysconfig, sys; sys.exit(not os.path.exists("
                                      "sysconfig.get_path('include') + '/Python.h'))"]).returncode == 0), None)
    if not later:
        pytest.skip("there is only one Python with headers here")
    calls, first = make()
    assert calls == [f"meson setup {folder / 'build'}", "ninja"]
    assert make() == (["ninja"], first), "nothing has changed"
    add(later)
    calls, second = make()
    assert calls == [f"meson setup --reconfigure {folder / 'build'}", "ninja"]
    assert set(second) > set(first)
    assert make() == (["ninja"], second)
    shutil.rmtree(folder / "pyenv")
    calls, last = make()
    assert calls == [f"meson setup --reconfigure {folder / 'build'}", "ninja"] and last == first
