"""`--redact`: nothing of an argument is in the recording, wherever command lines come from."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import launch
import pythons
import sampled
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.interpreters()
PYTHON = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
UNPROFILED = [path for version, path in pythons.sampled().items() if version not in INTERPRETERS]
SECRET = "hunter" + "2"  # in one piece only in command lines, never in source text

# A program and what it starts: -c with code and an argument, a module, a shell.
APP = """
import os, subprocess, sys
secret = sys.argv[1]
code = f"import sys\\ndef inner(): return {secret!r}\\ninner()\\nprint('ready', flush=True)\\nsys.stdin.read()"
if len(sys.argv) > 2:
    subprocess.run([sys.executable, "-c", code, secret])
subprocess.run([sys.executable, "-m", "json.tool", "--help", secret], stdout=subprocess.DEVNULL)
subprocess.run(["sh", "-c", f"{sys.executable} -c pass {secret}; exit 0"])
"""


def everything_in(path):
    """The bytes of the file, and those of all its compressed blocks."""
    data = path.read_bytes()
    if not shutil.which("zstd"):
        pytest.skip("there is no zstd to look into blocks")
    at, found = 0, data
    while (at := data.find(b"\x28\xb5\x2f\xfd", at)) >= 0:
        found += subprocess.run(["zstd", "-dcq"], input=data[at:], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL).stdout
        at += 4
    return found


def commands(path):
    done = launch.fathom("report", "--json", "--processes", str(path))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return [report["command"], *(row["command"] for row in report["processes"])]


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    return tmp_path / "app.py"


@pytest.mark.parametrize("collector", ["--calls", "--lines=all", "--sample"])
def test_run(app, tmp_path, collector):
    out, plain = tmp_path / "o.fathom", tmp_path / "plain.fathom"
    done = launch.run(collector, "--redact", app, SECRET, "more", python=PYTHON, output=out, quiet=False)
    assert done.returncode == 0 and SECRET not in done.stderr
    assert commands(out)[:2] == [f"{PYTHON} {app} …"] * 2
    kept = {command.replace(PYTHON, "python") for command in commands(out)[2:]}
    if collector == "--sample":  # may be too late for some, or see one between fork and exec
        kept.discard(f"python {app} …")
    else:
        assert len(commands(out)) == 5
    assert kept <= {"python -c …", "python -m json.tool …"}
    assert SECRET.encode() not in everything_in(out)
    launch.run(collector, app, SECRET, "more", python=PYTHON, output=plain)
    assert SECRET.encode() in everything_in(plain), "the test can see it"
    for name in ("later.fathom", "later.collapsed", "later.callgrind", "later.pb"):
        words = ["--to", "pprof"] if name.endswith(".pb") else []
        done = launch.fathom("convert", "--redact", plain, *words, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert SECRET.encode() not in everything_in(tmp_path / name), name
    assert launch.fathom("merge", "--redact", plain, "-o", tmp_path / "merged.fathom").returncode == 0
    assert SECRET.encode() not in everything_in(tmp_path / "merged.fathom")


def left_in_memory():
    """The bytes of all files in the folders of runs: live stores, notes, samples. The launcher writes some under one name and
    gives them another: then it is looked at again."""
    while True:
        try:
            return b"".join(everything_in(Path(folder, name)) for folder in launch.run_folders()
                            for name in os.listdir(folder) if Path(folder, name).is_file())
        except FileNotFoundError:
            pass


@pytest.mark.parametrize("collector", ["--calls", "--lines=all", "--sample"])
def test_killed_run(app, tmp_path, collector):
    """Neither what is there while the program runs, nor what merge makes of it."""
    out = tmp_path / "o.fathom"
    process = launch.start(launch.FATHOM, "run", collector, "--redact", "-q", "--python", PYTHON,
                           "--flush-signal", "USR2", "-o", out, app, SECRET, "more",
                           stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    assert SECRET.encode() not in everything_in(out)
    before = out.stat().st_ino
    process.send_signal(signal.SIGUSR2)
    while out.stat().st_ino == before:
        assert process.poll() is None
    assert SECRET.encode() not in everything_in(out), "flushed"
    if collector != "--sample":
        assert b"app.py" in left_in_memory(), "the test can see what is there"
    assert SECRET.encode() not in left_in_memory()
    process.kill()
    process.wait(timeout=launch.TIMEOUT)
    process.stdin.close()
    assert process.stdout.read() == ""
    process.stdout.close(), process.stderr.close()
    assert SECRET.encode() not in left_in_memory()
    [folder] = launch.run_folders()
    assert launch.fathom("merge", folder, "-o", tmp_path / "all.fathom").returncode == 0
    assert commands(tmp_path / "all.fathom")[0] == f"{PYTHON} {app} …"
    assert SECRET.encode() not in everything_in(tmp_path / "all.fathom")


@pytest.mark.skipif(not UNPROFILED, reason="no Python without an agent is here")
def test_a_python_without_agent(tmp_path):
    """Of which the preload library leaves a note."""
    look = (f"import glob, subprocess, sys\n"
            f"subprocess.run([{UNPROFILED[:1]}[0], '-I', '-c', 'pass', sys.argv[1]])\n"
            f"for path in glob.glob(sys.argv[2] + '/*/*.unprofiled'): print(open(path).read())\n")
    env = {**os.environ, "FATHOM_TMPDIR": str(tmp_path)}
    for words in (["--redact"], []):
        done = launch.run("--calls", *words, "-c", look, SECRET, tmp_path, python=PYTHON, env=env,
                          output=tmp_path / f"o{len(words)}.fathom")
        rest = "…" if words else f"-I -c pass {SECRET}"
        assert f"\ncommand={UNPROFILED[0]} {rest}\n" in done.stdout


def test_attach(tmp_path):
    with sampled.Program(PYTHON, "-c", "print(0, flush=True); input()", SECRET) as program:
        for words in (["--redact"], []):
            out = tmp_path / f"o{len(words)}.fathom"
            sampled.attach(program.pid, out, "--rounds", "3", *words)
            assert (SECRET.encode() in everything_in(out)) == (not words)
    assert commands(tmp_path / "o1.fathom") == [f"{os.path.basename(PYTHON)} -B -E -c …"] * 2 or \
        commands(tmp_path / "o1.fathom") == [f"{PYTHON} -B -E -c …"] * 2
