"""`fathom attach --memory`: a running Python begins to record its memory when asked, and ends it."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import pythons
import recordings
from launch import FATHOM, TIMEOUT, fathom, plain

HEADER = 33  # of a bytes object, with the byte behind it
WITH_REMOTE = ("3.14", "3.15")

# Programs wait for files to appear, in short sleeps: so they answer.
HEAD = """
import os, sys, threading, time
def await_file(name):
    while not os.path.exists(name):
        time.sleep(0.005)
def load(count=50, size=10_000):
    out = [None] * count
    for i in range(count):
        out[i] = bytes(size)
    return out
open("ready", "w").close()
"""


@pytest.fixture(params=WITH_REMOTE)
def remote_python(request):
    found = pythons.sampled().get(request.param)
    if not found:
        pytest.skip(f"no Python {request.param} here")
    return found


def await_path(path):
    end = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.005)


class Target:
    """A program, and what is attached to it; all in one folder."""

    def __init__(self, folder, python, code, *flags, **env):
        self.folder = folder
        self.stores = folder / "stores"
        self.stores.mkdir()
        (folder / "program.py").write_text(HEAD + code)
        self.out, self.err = open(folder / "out", "w+"), open(folder / "err", "w+")
        self.program = subprocess.Popen([python, *flags, "program.py"], cwd=folder, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.err, env={**os.environ, **env})
        self.pid = self.program.pid
        await_path(folder / "ready")
        (folder / "ready").unlink()

    def touch(self, name):
        (self.folder / name).touch()

    def await_file(self, name):
        await_path(self.folder / name)

    def attach(self, *words, output="out.fathom"):
        """Attached when it returns."""
        read, write = os.pipe()
        attached = subprocess.Popen([FATHOM, "attach", "--memory", "-q", "-o", output, "--ready-fd", str(write), *words,
                                     str(self.pid)], cwd=self.folder, pass_fds=[write], stderr=subprocess.PIPE, text=True,
                                    env=self._env())
        os.close(write)
        with os.fdopen(read) as ready:
            said = ready.read()
        if said != "attached\n":
            raise AssertionError(attached.communicate(timeout=TIMEOUT)[1])
        return attached

    def refused(self, *words):
        return fathom("attach", "--memory", "-o", "no.fathom", "--duration", "5", *words, str(self.pid), cwd=self.folder, env=self._env())

    def _env(self):
        return {**os.environ, "FATHOM_TMPDIR": str(self.stores)}

    def left(self):
        return [str(path) for path in self.stores.rglob("*")]

    def rows(self, name="out.fathom"):
        report = recordings.report(self.folder / name, "--memory", "--at", "all")
        return {row["name"]: row for row in sorted(report["functions"], key=lambda row: row["allocated_bytes"])}

    def end(self):
        status = self.program.wait(TIMEOUT)
        self.out.seek(0)
        self.err.seek(0)
        return status, self.out.read(), self.err.read()


@pytest.fixture
def target(remote_python, tmp_path):
    started = []

    def start(code, *flags, **env):
        started.append(Target(tmp_path, remote_python, code, *flags, **env))
        return started[-1]
    yield start
    for one in started:
        one.program.kill()
        one.program.wait()
        one.out.close()
        one.err.close()


def stop(attached):
    attached.send_signal(signal.SIGINT)
    said = attached.communicate(timeout=TIMEOUT)[1]
    assert attached.returncode == 0, said
    return said


def loaded(*loads):
    return sum(count * (size + HEADER) for count, size in loads)


# ---------------------------------------------------------------- what is recorded

def test_exact_bytes_and_the_program_goes_on(target):
    t = target("""
before = load(30)
open("held", "w").close()
await_file("go")
kept = load()
temporary = load(7, 100_000)
del temporary, before
open("done", "w").close()
await_file("end")
after = load(99)
print(len(kept), len(after))
sys.exit(7)
""")
    t.await_file("held")
    attached = t.attach()
    t.touch("go")
    t.await_file("done")
    assert stop(attached) == "" and t.left() == []
    t.touch("end")
    assert t.end() == (7, "50 99\n", "")
    row = t.rows()["load"]
    assert (row["allocated_bytes"], row["blocks"]) == (loaded((50, 10_000), (7, 100_000)), 57)
    assert (row["leaked_bytes"], row["leaked_blocks"]) == (loaded((50, 10_000)), 50)
    assert row["peak_bytes"] == row["allocated_bytes"]
    text = fathom("report", "--memory", str(t.folder / "out.fathom")).stdout
    assert text.splitlines()[0].endswith("program.py")
    assert int(text.partition(" blocks from before")[0].split()[-1]) >= 30
    assert "<string>" not in t.rows()  # nothing of the scripts that did it
    assert fathom("plot", str(t.folder / "out.fathom"), "-o", str(t.folder / "curve.svg")).returncode == 0


def test_duration_and_end_of_the_program(target):
    t = target("""
await_file("go")
kept = load()
await_file("then")
more = load(20)
print("bye")
os._exit(3)
""")
    attached = t.attach("--duration", "0.3", output="first.fathom")
    t.touch("go")
    assert attached.wait(TIMEOUT) == 0
    attached = t.attach()
    t.touch("then")
    assert attached.wait(TIMEOUT) == 0
    assert t.end() == (3, "bye\n", "") and t.left() == []
    assert t.rows("first.fathom")["load"]["allocated_bytes"] == loaded((50, 10_000))
    assert t.rows()["load"]["allocated_bytes"] == loaded((20, 10_000))


def test_many_times(target):
    t = target("""
kept = []
for i in range(8):
    await_file(f"go{i}")
    kept.append(load(i + 1))
    open(f"done{i}", "w").close()
print("bye")
""")
    for i in range(8):
        attached = t.attach(output=f"{i}.fathom")
        t.touch(f"go{i}")
        if i < 7:
            t.await_file(f"done{i}")
            stop(attached)
        else:
            attached.communicate(timeout=TIMEOUT)
        assert t.rows(f"{i}.fathom")["load"]["allocated_bytes"] == loaded((i + 1, 10_000))
    assert t.end() == (0, "bye\n", "") and t.left() == []


def test_main_thread_is_blocked_and_others_run(target):
    t = target("""
over = threading.Event()
def busy():
    while not os.path.exists("go"):
        sum(range(1000))
    load(40, 7000)
    open("done", "w").close()
    while not os.path.exists("end"):
        sum(range(1000))
    over.set()
def short():
    pass
threads = [threading.Thread(target=busy)]
for t in threads: t.start()
over.wait()
for t in threads: t.join()
print("bye")
""")
    attached = t.attach()
    t.touch("go")
    t.await_file("done")
    stop(attached)
    t.touch("end")
    assert t.end() == (0, "bye\n", "") and t.left() == []
    assert t.rows()["load"]["allocated_bytes"] == loaded((40, 7000))


def test_threads_that_come_and_go(target):
    t = target("""
def churn():
    load(20, 600)
def feed():
    while not os.path.exists("end"):
        threads = [threading.Thread(target=churn) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        open("tick", "w").close()
feeder = threading.Thread(target=feed)
feeder.start()
feeder.join()
print("bye")
""")
    for i in range(5):
        attached = t.attach("-f")
        for _ in range(2):  # the second round is whole
            (t.folder / "tick").unlink(missing_ok=True)
            t.await_file("tick")
        stop(attached)
        row = t.rows()["load"]
        assert row["allocated_bytes"] == row["blocks"] * (600 + HEADER) and row["blocks"] >= 8 * 20
    t.touch("end")
    assert t.end() == (0, "bye\n", "") and t.left() == []


def test_asyncio(target):
    t = target("""
import asyncio
async def eat(count):
    await asyncio.sleep(0.01)
    return load(count, 5000)
async def main():
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    kept = await asyncio.gather(eat(10), eat(20), eat(30))
    open("done", "w").close()
    while not os.path.exists("end"):
        await asyncio.sleep(0.01)
    print(sum(map(len, kept)))
asyncio.run(main())
""")
    attached = t.attach()
    t.touch("go")
    t.await_file("done")
    stop(attached)
    t.touch("end")
    assert t.end() == (0, "60\n", "")
    assert t.rows()["load"]["allocated_bytes"] == loaded((60, 5000))


def test_children_by_fork(target):
    t = target("""
await_file("go")
kept = load(10)
pid = os.fork()
if not pid:
    child = load(25)
    os._exit(0)
os.waitpid(pid, 0)
print("bye")
""")
    attached = t.attach()
    t.touch("go")
    assert attached.wait(TIMEOUT) == 0
    assert t.end() == (0, "bye\n", "")
    assert t.rows()["load"]["allocated_bytes"] == loaded((35, 10_000))


def test_signals_of_the_program_all_arrive(target):
    """Each is handled once, while recordings begin and end."""
    t = target("""
import signal
count = 0
def handle(*_):
    global count
    count += 1
    open(f"seen{count}", "w").close()
signal.signal(signal.SIGUSR1, handle)
open("set", "w").close()
while not os.path.exists("end"):
    sum(range(100))
print(count)
""")
    t.await_file("set")
    for i in range(1, 11):
        attached = t.attach("-f")
        os.kill(t.pid, signal.SIGUSR1)
        t.await_file(f"seen{i}")
        stop(attached)
    t.touch("end")
    assert t.end() == (0, "10\n", "")


def owners(folder):
    """Of a folder and what is in it; files come and go there."""
    users = {folder.lstat().st_uid}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            users.add(path.lstat().st_uid)
    return users


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_and_the_process_of_another_user(remote_python):
    """What lies in the folder is that user's, so that it can lead nobody astray; the recording is root's."""
    with tempfile.TemporaryDirectory(prefix="attach-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        t = Target(folder, remote_python, """
os.setgid(65534)
os.setuid(65534)
open("set", "w").close()
await_file("go")
kept = load()
print("bye")
""")
        t.stores.chmod(0o777)
        t.await_file("set")
        attached = t.attach()
        run_folder, = t.stores.iterdir()
        assert owners(run_folder) == {65534}
        t.touch("go")
        assert attached.wait(TIMEOUT) == 0, attached.stderr.read()
        assert t.end() == (0, "bye\n", "") and t.left() == []
        assert (folder / "out.fathom").stat().st_uid == 0
        assert t.rows()["load"]["allocated_bytes"] == loaded((50, 10_000))
        t.out.close()
        t.err.close()


def test_what_a_killed_fathom_leaves(target):
    t = target("""
await_file("go")
kept = load()
print("bye")
""")
    attached = t.attach()
    attached.kill()
    attached.communicate(timeout=TIMEOUT)
    t.touch("go")
    assert t.end() == (0, "bye\n", "")
    run_folder, = t.stores.iterdir()
    doctor = fathom("doctor", env=t._env()).stdout
    assert any(str(run_folder) in line and "program.py" in line for line in doctor.splitlines()), doctor
    assert fathom("merge", "out.fathom", "-o", "merged.fathom", cwd=t.folder).returncode == 0
    assert t.rows("merged.fathom")["load"]["allocated_bytes"] == loaded((50, 10_000)) and t.left() == []


# ---------------------------------------------------------------- when it cannot be

def test_recorded_already(target):
    t = target("""
await_file("go")
kept = load()
print("bye")
""")
    attached = t.attach()
    second = t.refused()
    assert second.returncode == 12 and "recorded already" in second.stderr and second.stderr.count("\n") == 1
    t.touch("go")
    assert attached.wait(TIMEOUT) == 0
    assert t.end() == (0, "bye\n", "") and t.left() == [] and not (t.folder / "no.fathom").exists()
    assert t.rows()["load"]["allocated_bytes"] == loaded((50, 10_000))


@pytest.mark.parametrize("flags, env", [((), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}), (("-X", "disable-remote-debug"), {})])
def test_remote_debugging_is_off(target, flags, env):
    t = target("""
await_file("go")
print("bye")
""", *flags, **env)
    done = t.refused()
    assert done.returncode == 19 and "switched off" in done.stderr and done.stderr.count("\n") == 1
    t.touch("go")
    assert t.end() == (0, "bye\n", "") and t.left() == [] and not (t.folder / "no.fathom").exists()


def test_no_answer_leaves_nothing_behind(target):
    t = target("""
import signal
signal.signal(signal.SIGUSR1, lambda *_: print("woken"))
open("set", "w").close()
signal.pause()
load()
print("bye", "_agent" in sys.modules, os.listdir("stores"))
""")
    t.await_file("set")
    time.sleep(0.1)  # it is in there then
    done = t.refused("--wait", "0.5")
    assert done.returncode == 20 and "did not answer" in done.stderr and done.stderr.count("\n") == 1
    assert t.left() == [] and not (t.folder / "no.fathom").exists()
    os.kill(t.pid, signal.SIGUSR1)
    assert t.end() == (0, "woken\nbye False []\n", "")


def test_a_late_answer_is_waited_for(target):
    t = target("""
time.sleep(1.5)
await_file("go")
kept = load()
print("bye")
""")
    attached = t.attach()
    t.touch("go")
    assert attached.wait(TIMEOUT) == 0
    assert t.end() == (0, "bye\n", "")
    assert t.rows()["load"]["allocated_bytes"] == loaded((50, 10_000))


def test_the_end_does_not_wait_for_ever(target):
    """The recording is written; the process ends it when it runs again, and tidies up."""
    t = target("""
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
await_file("go")
kept = load()
open("done", "w").close()
signal.pause()
await_file("end")
print("bye")
""")
    attached = t.attach()
    t.touch("go")
    t.await_file("done")
    time.sleep(0.1)
    assert "ends the recording by itself" in stop(attached)
    assert t.rows()["load"]["allocated_bytes"] == loaded((50, 10_000))
    os.kill(t.pid, signal.SIGUSR1)
    end = time.monotonic() + TIMEOUT
    while t.left() and time.monotonic() < end:
        time.sleep(0.01)
    assert t.left() == []
    again = t.attach("-f")
    t.touch("end")
    assert again.wait(TIMEOUT) == 0
    assert t.end() == (0, "bye\n", "")


def test_below_fathom_run(remote_python, tmp_path):
    code = HEAD + "print(os.getpid(), flush=True)\nawait_file('end')\n"
    (tmp_path / "program.py").write_text(code)
    run = subprocess.Popen([FATHOM, "run", "-q", "--memory", "--python", remote_python, "-o", "run.fathom", "program.py"],
                           cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    done = plain(FATHOM, "attach", "--memory", run.stdout.readline().strip(), cwd=tmp_path)
    assert done.returncode == 12 and "recorded already" in done.stderr
    (tmp_path / "end").touch()
    assert run.wait(TIMEOUT) == 0
    run.stdout.close()


def test_older_pythons_say_what_works_there(tmp_path):
    older = {version: path for version, path in pythons.sampled().items() if version not in WITH_REMOTE}
    for number, (version, path) in enumerate(older.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        t = Target(folder, path, "await_file('end')\n")
        done = t.refused()
        t.touch("end")
        assert done.returncode == 12 and "before CPython 3.14" in done.stderr and done.stderr.count("\n") == 1, version
        assert t.end() == (0, "", "") and t.left() == []
        t.out.close()
        t.err.close()


def test_not_a_python_and_nobody(tmp_path):
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        assert plain(FATHOM, "attach", "--memory", str(sleeper.pid), cwd=tmp_path).returncode == 13
    finally:
        sleeper.kill()
        sleeper.wait()
    assert plain(FATHOM, "attach", "--memory", str(sleeper.pid), cwd=tmp_path).returncode == 3
    assert plain(FATHOM, "attach", "--memory", "--rounds", "3", "1", cwd=tmp_path).returncode == 2
