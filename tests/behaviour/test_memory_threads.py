"""Names of threads in recordings of memory: what threading calls them, or what they call themselves, however short they live."""

from __future__ import annotations

import textwrap

import pytest

import launch
import recordings
from launch import own_run_folders  # noqa: F401 (a fixture)

BYTES = 100_000 + 33
PROGRAM = """
    import ctypes, os, threading
    one, kept = b"1", [None] * 5

    def work(i):
        kept[i] = one * 100_000

    def called(i):
        thread = ctypes.CDLL(None).pthread_self
        thread.restype = ctypes.c_void_p
        ctypes.CDLL(None).pthread_setname_np(ctypes.c_void_p(thread()), b"from-c")
        work(i)

    class Mine(threading.Thread):
        def run(self):
            work(2)

    def start(thread):
        thread.start()
        thread.join()

    start(threading.Thread(target=work, args=(0,), name="w\xf6rker"))
    start(threading.Thread(target=work, args=(1,), name="x" * 100))
    start(Mine())
    import _thread
    done = _thread.allocate_lock()
    done.acquire()

    def unnamed():
        called(3)
        done.release()

    _thread.start_new_thread(unnamed, ())
    done.acquire()
    if os.fork() == 0:
        start(threading.Thread(target=work, args=(4,), name="in-child"))
        os._exit(0)
    os.wait()
    os._exit(0)
"""


@pytest.mark.parametrize("collectors", [("--memory",), ("--memory=malloc",), ("--memory", "--calls")], ids=" ".join)
def test_threads_have_their_names(python, collectors, tmp_path):
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(textwrap.dedent(PROGRAM))
    done = launch.run(script, python=python, output=output, collectors=collectors)
    assert done.returncode == 0, done.stderr
    rows = [row for row in recordings.report(output, "--memory=threads", "--at", "all")["threads"]
            if row["name"] != "MainThread"]
    names = {row["name"] for row in rows if row["allocated_bytes"] >= BYTES}
    assert names >= {"w\xf6rker", "Thread-1", "from-c", "in-child"}
    assert any(set(name) == {"x"} and len(name) >= 30 for name in names)
