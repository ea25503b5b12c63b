"""However the program or the launcher ends, the caller sees the program's end, and the recording is
there."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time

import pytest

import launch
import pythons
import recordings
from launch import no_core_files, own_run_folders  # noqa: F401 (fixtures)

INTERPRETERS = pythons.interpreters()
ENDS = launch.program("ends.py")
PYTHON = list(INTERPRETERS.values())[0] if INTERPRETERS else sys.executable

WAYS = ("normally exit7 exit_text _exit3 exception interrupt abort segfault sigterm sigkill sighup"
        " pipe").split()


@pytest.fixture(params=sorted(INTERPRETERS) or [pytest.param(
    None, marks=pytest.mark.skip(reason="no interpreter of the matrix is here"))])
def python(request):
    return INTERPRETERS[request.param]


@pytest.fixture(autouse=True)
def nothing_left_behind(own_run_folders):
    yield
    assert launch.run_folders() == []


@pytest.mark.parametrize("way", WAYS)
def test_wait_status(python, way, tmp_path):
    alone = launch.plain(python, ENDS, way)
    under = launch.run(ENDS, way, python=python, output=tmp_path / "o.fathom")
    assert under.returncode == alone.returncode  # negative: minus the signal that ended it
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)
    assert (tmp_path / "o.fathom").stat().st_size > 16


def start_and_wait_until_ready(way, tmp_path, **options):
    """(the launcher, the program's pid)"""
    process = launch.start(launch.FATHOM, "run", "--calls", "-q", "--python", PYTHON, "-o",
                           tmp_path / "o.fathom", ENDS, way, **options)
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return process, int(pid)


@pytest.mark.parametrize("name", "SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGWINCH SIGCONT"
                         .split())
def test_signal_to_the_launcher_reaches_the_program(name, tmp_path):
    process, _ = start_and_wait_until_ready("catches", tmp_path)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=launch.TIMEOUT)
    assert (out, err, process.returncode) == (f"caught {name}\n", "", 20)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGUSR1", "SIGHUP"])
def test_signal_to_the_program_ends_the_launcher_alike(name, tmp_path):
    process, pid = start_and_wait_until_ready("waits", tmp_path)
    os.kill(pid, getattr(signal, name))
    process.communicate(timeout=launch.TIMEOUT)
    assert process.returncode == -getattr(signal, name)
    assert (tmp_path / "o.fathom").stat().st_size > 16


def test_fatal_signal_to_the_launcher(tmp_path):
    process, _ = start_and_wait_until_ready("waits", tmp_path)
    process.terminate()
    process.communicate(timeout=launch.TIMEOUT)
    assert process.returncode == -signal.SIGTERM
    assert (tmp_path / "o.fathom").stat().st_size > 16


def test_killed_launcher_leaves_the_program_running(tmp_path):
    process, pid = start_and_wait_until_ready("catches", tmp_path)
    try:
        process.kill()
        process.wait(timeout=launch.TIMEOUT)
        os.kill(pid, 0)
        os.kill(pid, signal.SIGUSR1)
        assert process.stdout.read() == "caught SIGUSR1\n"
        assert (tmp_path / "o.fathom").stat().st_size > 16, "the facts were written at the start"
        left = launch.run_folders()
        assert any(name.endswith(".live") for folder in left for name in os.listdir(folder))
    finally:
        process.stdout.close()
        process.stderr.close()
        remove(launch.run_folders())


def remove(folders):
    for folder in folders:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def test_process_that_outlives_the_program(tmp_path):
    """The launcher does not wait for it, keeps the folder, and says so."""
    code = ("import os, sys, time\n"
            "read, write = os.pipe()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    os.setsid()\n"
            "    null = os.open('/dev/null', os.O_RDWR)\n"
            "    for fd in (0, 1, 2): os.dup2(null, fd)\n"
            "    os.execv(sys.executable, [sys.executable, '-c',\n"
            "        f'import os, time; os.write({write}, b\"x\"); time.sleep(600)'])\n"
            "os.read(read, 1)\n"
            "print(pid)\n")
    code = code.replace("os.pipe()", "os.pipe(); os.set_inheritable(write, True)")
    done = launch.run("-c", code, python=PYTHON, output=tmp_path / "o.fathom")
    pid = int(done.stdout)
    try:
        left = launch.run_folders()
        kept = [folder for folder in left if folder in done.stderr]
        assert done.returncode == 0 and len(kept) == 1
        assert "1 process is still running" in done.stderr and "fathom merge" in done.stderr
        assert os.listdir(kept[0])
    finally:
        os.kill(pid, signal.SIGKILL)
        remove(launch.run_folders())


def test_processes_that_end_with_the_program_do_not_keep_the_folder(tmp_path):
    code = ("import multiprocessing as m\n"
            "if __name__ == '__main__':\n"
            "    c = m.get_context('fork')\n"
            "    with c.Pool(3, c.Barrier(3).wait) as pool: print(sum(pool.map(abs, [-1] * 9)))\n")
    script = tmp_path / "pool.py"
    script.write_text(code)
    done = launch.run(str(script), python=PYTHON, output=tmp_path / "o.fathom")
    assert (done.stdout, done.stderr, done.returncode) == ("9\n", "", 0)


NUMBER_AGAIN = """
import os, subprocess, sys, time
code = "import os, sys\\ndef %s(): print(os.getpid(), flush=True)\\n%s()\\nsys.exit(%d)"
def child(name, status):
    words = [sys.executable, "-c", code % (name, name, status)]
    return int(subprocess.run(words, stdout=subprocess.PIPE).stdout)
for attempt in range(50):
    first = child("first", 3)
    time.sleep(0.03)
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(first - 1))
    if child("second", 5) == first:
        print(first)
        break
"""


@pytest.mark.skipif(not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK) or os.getuid() != 0,
                    reason="only root chooses the number of a process")
def test_two_processes_of_one_number(tmp_path):
    """Each has its own calls, its own end and its own status."""
    done = launch.run("-c", NUMBER_AGAIN, python=PYTHON, output=tmp_path / "o.fathom")
    assert done.returncode == 0, done.stderr
    if not done.stdout:
        pytest.skip("others took the number each time")
    rows = recordings.report(tmp_path / "o.fathom", "--processes")["processes"]
    first, second = [row for row in rows if row["process"] == int(done.stdout)]
    assert (first["exit_status"], second["exit_status"]) == (3, 5)
    assert "def first" in first["command"] and "def second" in second["command"]


# ---------------------------------------------------------------- with a terminal

class Terminal:
    """The launcher as the foreground job of a terminal, in a session of its own."""

    def __init__(self, command):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                self.be_the_shell(command)
            finally:
                os._exit(1)
        self.seen = ""

    @staticmethod
    def be_the_shell(command):
        """Run the command as a job in the foreground; one character continues it when stopped."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(command[0], command)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                break
            os.write(1, f"[job stopped by {os.WSTOPSIG(status)}]\n".encode())
            os.read(0, 1)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        os.write(1, f"[job ended with {os.waitstatus_to_exitcode(status)}]\n".encode())

    def until(self, text):
        end = time.monotonic() + launch.TIMEOUT
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            try:
                self.seen += os.read(self.master, 4096).decode()
            except OSError:
                assert text in self.seen, self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def close(self):
        os.close(self.master)
        os.waitpid(self.pid, 0)


def on_terminal(way, tmp_path):
    return Terminal([launch.FATHOM, "run", "--calls", "-q", "--python", PYTHON, "-o",
                     str(tmp_path / "o.fathom"), ENDS, way])


def test_interrupt_from_the_terminal(tmp_path):
    terminal = on_terminal("catches", tmp_path)
    terminal.until("ready")
    terminal.type("\x03")
    # Once: the terminal sends it to the program itself, the launcher does not repeat it.
    assert terminal.until("[job ended with 20]").count("caught SIGINT") == 1
    terminal.close()


def test_quit_from_the_terminal(tmp_path):
    terminal = on_terminal("waits", tmp_path)
    terminal.until("ready")
    terminal.type("\x1c")
    terminal.until(f"[job ended with {-signal.SIGQUIT}]")
    terminal.close()
    assert (tmp_path / "o.fathom").stat().st_size > 16


def test_stop_and_continue_from_the_terminal(tmp_path):
    terminal = on_terminal("catches", tmp_path)
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until(f"[job stopped by {int(signal.SIGTSTP)}]")
    terminal.type("\n")
    terminal.until("caught SIGCONT")
    terminal.until("[job ended with 20]")
    terminal.close()


def test_program_that_ignores_stop(tmp_path):
    """^Z that the program ignores does not stop the launcher either."""
    code = ("import signal, sys; signal.signal(signal.SIGTSTP, signal.SIG_IGN);"
            "print('ready', flush=True); input(); print('went on')")
    terminal = Terminal([launch.FATHOM, "run", "--calls", "-q", "--python", PYTHON, "-o",
                         str(tmp_path / "o.fathom"), "-c", code])
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.type("\n")
    assert "stopped" not in terminal.until("[job ended with 0]")
    terminal.close()


def test_stop_and_continue_of_the_launcher_by_signal(tmp_path):
    process, pid = start_and_wait_until_ready("catches", tmp_path, start_new_session=True)
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)
    assert process.stdout.readline() == "caught SIGCONT\n"
    process.communicate(timeout=launch.TIMEOUT)
    assert process.returncode == 20
