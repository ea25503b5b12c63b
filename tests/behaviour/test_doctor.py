"""`fathom doctor`: what it says is compared with what the system says itself."""

from __future__ import annotations

import json
import os
import pty
import shutil
import select
import subprocess
import sys
from pathlib import Path

import pytest

import launch
import pythons
from test_runtime_find import NEEDS_ROOT, as_nobody, refuse_process_vm_readv, running

INTERPRETERS = pythons.interpreters()
UTF8 = dict(os.environ, LC_ALL="C.UTF-8")


def doctor(*words, **options):
    options.setdefault("env", UTF8)
    return launch.fathom("doctor", *words, **options)


def as_json(*words, **options):
    done = doctor("--json", *words, **options)
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["limited"] == (done.returncode == 1)
    assert done.returncode in (0, 1)
    return answer


def finding(answer, name):
    return next(f for f in answer["findings"] if f["id"] == name)


def number_in(path):
    return int(Path(path).read_text()) if os.path.exists(path) else None


def test_permissions_are_those_of_the_system():
    permissions = as_json()["permissions"]
    assert permissions["yama_ptrace_scope"] == number_in("/proc/sys/kernel/yama/ptrace_scope")
    assert permissions["perf_event_paranoid"] == number_in("/proc/sys/kernel/perf_event_paranoid")
    status = dict(line.split(":\t", 1) for line in
                  launch.plain("cat", "/proc/self/status").stdout.splitlines() if ":\t" in line)
    assert permissions["capabilities"] == status["CapEff"]
    assert permissions["seccomp"] == int(status["Seccomp"])
    assert permissions["sys_ptrace"] == bool(int(status["CapEff"], 16) >> 19 & 1)
    assert permissions["proc"] is True


def test_pythons_on_path(tmp_path):
    """Every Python once, whatever links lead to it; scripts and other programs are none."""
    expected = {}
    for version, path in INTERPRETERS.items():
        (tmp_path / f"python{version}").symlink_to(os.path.realpath(path))
        (tmp_path / f"python{version.replace('.', '')}").symlink_to(os.path.realpath(path))
        expected[version] = bool(list(Path(launch.FATHOM).resolve().parent.glob(
            f"python/fathom/_agent.cpython-{version.replace('.', '')}-*.so")))
    (tmp_path / "python3").write_text("#!/bin/sh\n")
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "python3-config").symlink_to("/bin/sh")
    found = as_json(env=dict(UTF8, PATH=str(tmp_path)))["pythons"]
    assert {".".join(p["version"].split(".")[:2]): p["agent"] for p in found} == expected
    assert len(found) == len(expected)
    assert all(p["sampled"] for p in found)


def test_a_python_without_an_agent_is_a_limit(tmp_path):
    if not INTERPRETERS:
        pytest.skip("no interpreter of the matrix is here")
    version, path = list(INTERPRETERS.items())[-1]
    package = Path(launch.FATHOM).resolve().parent / "python" / "fathom"
    if not (package / "libfathom_preload.so").exists():
        pytest.skip("the package was not built")
    agents = tmp_path / "agents"
    agents.mkdir()
    for file in package.glob("*.so"):
        if f"cpython-{version.replace('.', '')}-" not in file.name:
            shutil.copy(file, agents)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / f"python{version}").symlink_to(os.path.realpath(path))
    env = dict(UTF8, PATH=str(tmp_path / "bin"), FATHOM_AGENTS=str(agents))
    answer = as_json(env=env)
    assert answer["limited"]
    assert finding(answer, "calls")["verdict"] == "limited"
    assert version in finding(answer, "calls")["text"]
    assert finding(answer, "calls")["command"]


def test_running_pythons():
    with running(sys.executable) as target:
        rows = {p["pid"]: p for p in as_json()["processes"]}
        assert rows[target.pid]["version"] == target.facts["version"]
        assert rows[target.pid]["readable"] is True
        assert str(target.pid) in doctor().stdout


def test_one_process():
    with running(sys.executable) as target:
        answer = as_json(str(target.pid))
        process = answer["process"]
        assert process["version"] == target.facts["version"]
        assert int(process["runtime"], 16) == target.facts["at"]
        assert process["executable"] == os.readlink(f"/proc/{target.pid}/exe")
        assert process["folder"] == os.getcwd()
        assert process["parent"] == os.getpid()
        assert process["uid"] == os.getuid()
        assert finding(answer, "attach")["verdict"] == "works"
        page = doctor(str(target.pid))
        assert page.returncode == 0
        assert process["version"] in page.stdout and process["interpreter"] in page.stdout


def test_a_process_that_is_no_python():
    process = subprocess.Popen(["sleep", "60"])
    try:
        answer = as_json(str(process.pid))
        assert answer["limited"] and answer["process"]["version"] is None
        assert "no Python" in finding(answer, "attach")["text"]
    finally:
        process.kill()
        process.wait()


def test_a_command_line_that_is_no_text(tmp_path):
    """Control characters and broken UTF-8 reach neither the terminal nor JSON."""
    hostile = b"\x1b]0;owned\x07\xff\xfe"
    process = subprocess.Popen([sys.executable.encode(), b"-c", b"print(1, flush=True); input()",
                                hostile], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    try:
        for words in ((), ("--json",), (str(process.pid),), ("--json", str(process.pid))):
            done = subprocess.run([launch.FATHOM, "doctor", *words], stdout=subprocess.PIPE,
                                  env=UTF8, check=False)
            assert "owned" in done.stdout.decode()
            assert b"\x1b" not in done.stdout and b"\x07" not in done.stdout
            if "--json" in words:
                json.loads(done.stdout)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("words, status", [
    (["x"], 2), (["-5"], 2), (["0"], 2), (["1", "2"], 2), (["--nonsense"], 2),
    (["99999999999999999999"], 2), (["--color", "pink"], 2), (["2147483647"], 3),
])
def test_bad_command_lines(words, status):
    done = doctor(*words)
    assert done.returncode == status
    assert done.stdout == "" and done.stderr


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
def test_behind_a_filter():
    answer = as_json(preexec_fn=refuse_process_vm_readv)
    assert answer["limited"]
    assert finding(answer, "run")["verdict"] == "limited"
    assert finding(answer, "attach")["verdict"] == "limited"
    assert answer["permissions"]["read_child"] is False


@NEEDS_ROOT
def test_without_root():
    """An ordinary user is told how to read the others' processes, and that is no fault."""
    folder = Path("/tmp") / f"fathom-doctor-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        command = shutil.copy(launch.FATHOM, folder / "fathom")
        done = launch.plain(command, "doctor", "--json", env=UTF8, cwd="/", preexec_fn=as_nobody)
        answer = json.loads(done.stdout)
        assert answer["permissions"]["sys_ptrace"] is False
        assert finding(answer, "others")["verdict"] == "extra"
        assert "sudo" in finding(answer, "others")["command"]
        assert all(p["uid"] == 65534 for p in answer["processes"])
    finally:
        shutil.rmtree(folder)


def on_terminal(**env):
    """What `fathom doctor` writes to a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([launch.FATHOM, "doctor"], stdout=slave, stdin=slave,
                               env=dict(UTF8, TERM="xterm", **env))
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    process.wait()
    os.close(master)
    return text.decode()


def test_colours_only_on_a_terminal():
    assert "\x1b[" in on_terminal()
    assert "\x1b[" not in on_terminal(NO_COLOR="1")
    assert "\x1b[" not in doctor().stdout
    assert "\x1b[" in doctor("--color", "always").stdout


def test_marks_without_utf8():
    assert "✓" in doctor().stdout
    plain = doctor(env=dict(os.environ, LC_ALL="C")).stdout
    assert "✓" not in plain and "  ok run " in plain


# ---------------------------------------------------------------- folders of runs

WAITS = "import os, sys; print('ready', os.getpid(), flush=True); sys.stdin.read()"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A place for runs that is this test's alone."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setenv("FATHOM_TMPDIR", str(folder))
    monkeypatch.setitem(UTF8, "FATHOM_TMPDIR", str(folder))
    return folder


def started(tmp_path, *words):
    process = launch.start(launch.FATHOM, "run", *words, "--python", sys.executable, "-q", "-o",
                           tmp_path / "o%n.fathom", "-c", WAITS, stdin=subprocess.PIPE)
    ready, pid = process.stdout.readline().split()
    assert ready == "ready"
    process.program = os.pidfd_open(int(pid))
    return process


def kill(process):
    """The launcher alone: the program goes on until end()."""
    process.kill()
    process.wait(timeout=launch.TIMEOUT)


def end(process):
    process.stdin.close()
    ended, _, _ = select.select([process.program], [], [], launch.TIMEOUT)
    assert ended, "the program has ended"
    os.close(process.program)
    assert process.stdout.read() == ""
    process.wait(timeout=launch.TIMEOUT)
    process.stdout.close(), process.stderr.close()


def states():
    return [(run["running"], run["command"].split()[1:2]) for run in as_json()["runs"]]


@pytest.mark.parametrize("collector", ["--calls", "--sample"])
def test_folders_of_runs(tmp_path, runs, collector):
    assert as_json()["runs"] == [] and "Folders of runs" not in doctor().stdout
    process = started(tmp_path, collector)
    assert states() == [(True, ["-c"])], "its launcher lives"
    assert doctor("--clear").stdout == (
        "Removed 0 folders of runs that were cut off, 0 bytes; 1 of runs that go on was left alone.\n")
    kill(process)
    if collector == "--calls":  # only a process that records by itself still needs the folder
        assert states() == [(True, ["-c"])], "its process lives"
        assert doctor("--clear").stdout.startswith("Removed 0 folders")
    end(process)
    assert states() == [(False, ["-c"])]
    [run] = as_json()["runs"]
    files = [path for path in Path(run["folder"]).iterdir()]
    assert run["bytes"] == sum(path.lstat().st_blocks * 512 for path in files) > 0
    text = doctor().stdout
    assert run["folder"] in text and "cut off" in text and "fathom doctor --clear" in text
    done = doctor("--clear")
    assert done.stdout == (f"Removed 1 folder of runs that were cut off, {run['bytes']:,} bytes.\n")
    assert done.returncode == 0 and list(runs.iterdir()) == []


def test_clear_takes_nothing_that_is_not_a_run(tmp_path, runs):
    process = started(tmp_path, "--calls")
    kill(process), end(process)
    [folder] = runs.iterdir()
    others = {"fathom-notes1": 0o700, "fathom-abcdef": 0o755, "fathom-abcdefg": 0o700, "mine": 0o700}
    for name, mode in others.items():
        (runs / name).mkdir(mode)
        (runs / name).chmod(mode)
    (runs / "fathom-notes1" / "thesis.txt").write_text("dear")
    (runs / "fathom-linked").symlink_to(tmp_path)
    done = doctor("--clear")
    assert done.stdout.startswith("Removed 1 folder of") and done.returncode == 0
    assert not folder.exists()
    assert {path.name for path in runs.iterdir()} == {*others, "fathom-linked"}
    assert (runs / "fathom-notes1" / "thesis.txt").read_text() == "dear"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_clear_leaves_other_users_alone(tmp_path, runs):
    process = started(tmp_path, "--calls")
    kill(process), end(process)
    [folder] = runs.iterdir()
    os.chown(folder, 12345, 12345)
    assert as_json()["runs"] == []
    assert doctor("--clear").stdout.startswith("Removed 0 folders")
    assert folder.exists()


def test_a_second_folder_goes_with_the_first(tmp_path, runs, monkeypatch):
    second = tmp_path / "second"
    second.mkdir()
    for environment in (os.environ, UTF8):
        monkeypatch.setitem(environment, "FATHOM_TMPDIR", f"{runs}:{second}")
    process = started(tmp_path, "--calls")
    assert len(list(second.iterdir())) == 1 and states() == [(True, ["-c"])]
    kill(process), end(process)
    assert states() == [(False, ["-c"])]
    assert doctor("--clear").stdout.startswith("Removed 1 folder of")
    assert list(runs.iterdir()) == list(second.iterdir()) == []


def test_clear_goes_alone():
    for words in (["--json"], [str(os.getpid())]):
        done = doctor("--clear", *words)
        assert done.returncode == 2 and "--clear goes alone" in done.stderr


def test_merge_removes_what_it_gathered(tmp_path, runs):
    process = started(tmp_path, "--calls")
    kill(process)
    recording = tmp_path / "o1.fathom"
    done = launch.fathom("merge", recording, "-o", tmp_path / "early.fathom")
    assert done.returncode == 0 and "stays: a process of the run still goes on" in done.stderr
    end(process)
    [folder] = runs.iterdir()
    done = launch.fathom("merge", "--keep", recording, "-o", tmp_path / "kept.fathom")
    assert (done.returncode, done.stderr) == (0, "") and list(runs.iterdir()) == [folder]
    done = launch.fathom("merge", recording, "-o", "/dev/null")
    assert "stays: what was written is no file" in done.stderr and list(runs.iterdir()) == [folder]
    done = launch.fathom("merge", recording, "-o", "/dev/full")
    assert done.returncode == 8 and list(runs.iterdir()) == [folder]
    (folder / "99999999.0.live").write_bytes(b"rubbish")
    done = launch.fathom("merge", recording, "-o", tmp_path / "damaged.fathom")
    assert done.returncode == 0 and "stays: not everything in it could be read" in done.stderr
    (folder / "99999999.0.live").unlink()
    done = launch.fathom("merge", recording, "-o", tmp_path / "all.fathom")
    assert (done.returncode, done.stderr) == (0, "") and list(runs.iterdir()) == []
    whole, kept = (json.loads(launch.fathom("report", "--json", tmp_path / name).stdout)
                   for name in ("all.fathom", "kept.fathom"))
    assert [f["calls"] for f in whole["functions"]] == [f["calls"] for f in kept["functions"]] != []
    done = launch.fathom("merge", recording, "-o", tmp_path / "late.fathom")
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and str(folder) in done.stderr
