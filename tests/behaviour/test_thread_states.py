"""The state of blocked threads, against real programs that are known to wait for one thing.

Each program prints "ready" when it is about to wait, and what it waits for if the test cannot know
(addresses, paths). `tool_states` then tells what the threads do; it is asked until the thread has
come to rest, since "ready" is printed a moment before.
"""

import re
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

import launch
import pythons

TOOL = Path(launch.FATHOM).resolve().parent / "tests" / "unit" / "tool_states"
VERSIONS = pythons.SAMPLED_VERSIONS[::2]  # what a thread waits for depends little on the version
LIMIT = 120  # seconds until a test gives up


@pytest.fixture(params=VERSIONS)
def interpreter(request):
    path = pythons.interpreters().get(request.param) or older(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine (tools/pythons provide)")
    if not TOOL.exists():
        pytest.skip("the unit tests were not built (meson -Dtests=true)")
    return path


def older(version):
    """A version below those that agents are built for; only its command is needed here."""
    import shutil

    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


class Program:
    def __init__(self, python, code, **options):
        code = "import os, sys\ndef ready(*words):\n    print('ready', *words, flush=True)\n" \
            + textwrap.dedent(code)
        self.process = subprocess.Popen([python, "-c", code], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        first, *self.words = self.process.stdout.readline().split()
        assert first == "ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def threads(self):
        """[(state, text)], the main thread first."""
        out = subprocess.run([TOOL, str(self.process.pid)], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
        rows = [line.split("\t") for line in out.splitlines()]
        rows.sort(key=lambda row: (row[0] != str(self.process.pid), int(row[0])))
        return [(state, text) for _, state, text in rows]

    def expect(self, state, text="", thread=0):
        """Wait until the thread shows this."""
        seen = set()
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            rows = self.threads()
            if len(rows) > thread and rows[thread][0] == state \
                    and re.fullmatch(text, rows[thread][1]):
                return
            seen.update(rows)
            time.sleep(0.01)
        pytest.fail(f"never {state} {text!r}, but {seen}")


def test_sleep(interpreter):
    with Program(interpreter, "import time; ready(); time.sleep(1000)") as program:
        program.expect("sleep")


def test_sleep_in_select(interpreter):
    with Program(interpreter, """
            import select
            ready(); select.select([], [], [], 1000)""") as program:
        program.expect("sleep")


def test_sleep_in_poll(interpreter):
    with Program(interpreter, "import select; ready(); select.poll().poll(10**6)") as program:
        program.expect("sleep")


def test_pause(interpreter):
    with Program(interpreter, "import signal; ready(); signal.pause()") as program:
        program.expect("sleep")


def test_lock(interpreter):
    with Program(interpreter, """
            import threading
            lock = threading.Lock(); lock.acquire()
            ready(); lock.acquire()""") as program:
        program.expect("lock", "futex 0x[0-9a-f]+")


@pytest.mark.parametrize("wait", [
    "threading.Event().wait(1000)",
    "threading.Event().wait()",
    "queue.Queue().get()",
    "queue.Queue().get(timeout=1000)",
    "threading.Semaphore(0).acquire()",
    "multiprocessing.Semaphore(0).acquire()",
])
def test_other_locks(interpreter, wait):
    with Program(interpreter, f"""
            import multiprocessing, queue, threading
            ready(); {wait}""") as program:
        program.expect("lock", "futex 0x[0-9a-f]+")


def test_threads_are_told_apart(interpreter):
    with Program(interpreter, """
            import threading, time
            done = threading.Lock(); done.acquire()
            a = threading.Thread(target=time.sleep, args=(1000,)); a.start()
            b = threading.Thread(target=done.acquire); b.start()
            ready(); sys.stdin.read()""") as program:
        program.expect("other", r"pipe:\[\d+\]", 0)
        program.expect("sleep", "", 1)
        program.expect("lock", "futex 0x[0-9a-f]+", 2)


def test_file_lock(interpreter, tmp_path):
    path = tmp_path / "the lock"
    path.touch()
    for call in ("flock", "lockf"):
        with Program(interpreter, f"""
                import fcntl
                held = open({str(path)!r}, "w"); again = open({str(path)!r}, "w")
                fcntl.flock(held, fcntl.LOCK_EX)
                child = 0
                if {call!r} == "lockf":     # locks belong to processes: another one must hold it
                    r, w = os.pipe()
                    child = os.fork()
                    if child == 0:
                        fcntl.lockf(held, fcntl.LOCK_EX)
                        os.write(w, b"x")
                        os.close(w)
                        sys.stdin.read()
                        os._exit(0)
                    os.read(r, 1)
                ready()
                fcntl.{call}(again, fcntl.LOCK_EX)""") as program:
            program.expect("lock", re.escape(str(path)))


def test_pipe(interpreter):
    with Program(interpreter, "r, w = os.pipe(); ready(os.fstat(r).st_ino); os.read(r, 1)"
                 ) as program:
        program.expect("other", rf"pipe:\[{program.words[0]}\]")


def test_fifo(interpreter, tmp_path):
    path = tmp_path / "fifo"
    with Program(interpreter, f"""
            os.mkfifo({str(path)!r})
            fd = os.open({str(path)!r}, os.O_RDWR)
            ready(); os.read(fd, 1)""") as program:
        program.expect("other", re.escape(str(path)))


def test_opening(interpreter, tmp_path):
    """A file that takes long to open. A FIFO without a writer stands for it."""
    with Program(interpreter, """
            os.mkfifo("slow")
            ready(); open("slow")""", cwd=tmp_path) as program:
        program.expect("disk", re.escape(str(tmp_path / "slow")))


def test_network(interpreter):
    """Both ends of a connection, by address."""
    with Program(interpreter, """
            import socket, threading
            server = socket.create_server(("127.0.0.1", 0))
            client = socket.create_connection(server.getsockname())
            far, _ = server.accept()
            for wait in (server.accept, lambda: far.recv(1)):
                threading.Thread(target=wait, daemon=True).start()
            client.settimeout(1000)
            ready(server.getsockname()[1], client.getsockname()[1])
            client.recv(1)""") as program:
        port, other = program.words
        client = rf"tcp 127\.0\.0\.1:{other} → 127\.0\.0\.1:{port}"
        program.expect("network", client)  # a poll with a timeout
        program.expect("network", rf"tcp 127\.0\.0\.1:{port} \(listening\)", 1)
        program.expect("network", rf"tcp 127\.0\.0\.1:{port} → 127\.0\.0\.1:{other}", 2)


def test_connect(interpreter):
    """A listener whose queue is full answers nobody, so connecting waits."""
    with Program(interpreter, """
            import socket
            server = socket.socket()
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            address = server.getsockname()
            held = []
            for _ in range(4):
                probe = socket.socket(); probe.setblocking(False)
                probe.connect_ex(address); held.append(probe)
            ready(address[1])
            socket.socket().connect(address)""") as program:
        program.expect("network", rf"tcp 127\.0\.0\.1:\d+ → 127\.0\.0\.1:{program.words[0]}")


def test_sending(interpreter):
    with Program(interpreter, """
            import socket
            a, b = socket.socketpair()
            ready(); a.sendall(bytes(1 << 24))""") as program:
        program.expect("network", "unix")


def test_udp(interpreter):
    with Program(interpreter, """
            import socket
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("127.0.0.1", 0))
            ready(s.getsockname()[1]); s.recvfrom(1)""") as program:
        program.expect("network", rf"udp 127\.0\.0\.1:{program.words[0]}")


def test_unix_socket(interpreter, tmp_path):
    with Program(interpreter, """
            import socket
            s = socket.socket(socket.AF_UNIX)
            s.bind("listens here"); s.listen()
            ready(); s.accept()""", cwd=tmp_path) as program:
        program.expect("network", "unix listens here")


def test_asyncio_server(interpreter):
    with Program(interpreter, """
            import asyncio
            async def main():
                server = await asyncio.start_server(None, "127.0.0.1", 0)
                ready()
                await asyncio.sleep(1000)
            asyncio.run(main())""") as program:
        program.expect("network", "epoll of 2 descriptors")


def test_asyncio_sleep(interpreter):
    """The loop's own socket pair is no network."""
    with Program(interpreter, """
            import asyncio
            async def main():
                ready()
                await asyncio.sleep(1000)
            asyncio.run(main())""") as program:
        program.expect("sleep", "epoll of 1 descriptor")


def test_asyncio_waits_for_a_thread(interpreter):
    with Program(interpreter, """
            import asyncio, threading
            async def main():
                ready()
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, threading.Event().wait)
            asyncio.run(main())""") as program:
        program.expect("other", "epoll of 1 descriptor")


def test_select_of_several(interpreter):
    with Program(interpreter, """
            import select, socket
            a, b = socket.socketpair()
            r, w = os.pipe()
            ready(); select.select([a, b, r], [], [])""") as program:
        program.expect("network", r"3 descriptors: .*unix.*")


@pytest.mark.parametrize("wait", ["child.wait()", "child.wait(1000)", "os.waitpid(child.pid, 0)"])
def test_child(interpreter, wait):
    """With a timeout Pythons before 3.15 sleep and look; 3.15 polls a pidfd."""
    with Program(interpreter, f"""
            import subprocess
            child = subprocess.Popen(["sleep", "1000"])
            ready(child.pid)
            try:
                {wait}
            finally:
                child.kill()""") as program:
        try:
            if "1000" in wait and "3.15" not in interpreter:
                program.expect("sleep")
            else:
                program.expect("other", f"process {program.words[0]}")
        finally:
            subprocess.run(["kill", program.words[0]], check=True)


def test_child_of_any_kind(interpreter):
    with Program(interpreter, """
            child = os.fork()
            if child == 0:
                sys.stdin.read()
                os._exit(0)
            ready(); os.wait()""") as program:
        program.expect("other", "any child process")


def test_running(interpreter):
    with Program(interpreter, "ready()\nwhile True: pass") as program:
        program.expect("running")


def test_two_fight_for_the_gil(interpreter):
    """Without being told where the GIL is, a thread that waits for it waits for a lock."""
    with Program(interpreter, """
            import threading
            def spin():
                while True: pass
            for _ in range(2): threading.Thread(target=spin, daemon=True).start()
            ready(); threading.Event().wait()""") as program:
        program.expect("lock", "futex 0x[0-9a-f]+", 1)
        program.expect("running", "", 1)


def test_stopped(interpreter):
    import signal

    with Program(interpreter, "ready()\nwhile True: pass") as program:
        program.process.send_signal(signal.SIGSTOP)
        program.expect("other", r"(pipe:\[\d+\])?")  # it may still be on its way out of print()


def test_writing_out_a_file(interpreter, tmp_path):
    """Where fsync takes time: seen blocked at least once, and then on that file."""
    path = tmp_path / "data"
    with Program(interpreter, f"""
            with open({str(path)!r}, "wb", buffering=0) as file:
                ready()
                while True:
                    file.seek(0); file.write(bytes(1 << 22)); os.fsync(file)""") as program:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            state, text = program.threads()[0]
            if state != "running":
                assert (state, text) in [("disk", str(path)), ("disk", "")]
                return
    pytest.skip("files are written without waiting here (a file system in memory)")
