"""Programs that are watched from outside, and what the recordings say of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import launch
import recordings

STATES = ("python", "c", "gil", "lock", "disk", "network", "sleep", "other")
BOOTSTRAP = ("_bootstrap", "_bootstrap_inner", "run")  # what stands below a thread's function


class Program:
    """A program of tests/programs, or a piece of code, that says one line of JSON when it is ready
    and ends when its standard input does."""

    def __init__(self, python: str, *words: str, **options):
        options.setdefault("stdin", subprocess.PIPE)
        self.process = subprocess.Popen([python, "-B", "-E", *map(str, words)],
                                        stdout=subprocess.PIPE, **options)
        line = self.process.stdout.readline()
        assert line, f"{words} did not start under {python}"
        self.says = json.loads(line)
        self.pid = self.process.pid

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_exception) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.process.stdout.close()

    def at_rest(self) -> Program:
        """Wait until its main thread is blocked in reading its standard input."""
        end = time.monotonic() + launch.TIMEOUT
        while not Path(f"/proc/{self.pid}/syscall").read_text().startswith("0 0x0 "):
            assert time.monotonic() < end
            time.sleep(0.01)
        return self

    def end(self) -> tuple[str, int]:
        """Let it end; what it still said, and its status."""
        out, _ = self.process.communicate(timeout=launch.TIMEOUT)
        return out.decode(), self.process.returncode


def attach(pid: int, output: str | Path, *words: str) -> Recording:
    done = launch.fathom("attach", str(pid), "-q", "-o", str(output), *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    return Recording(output)


def wait_until_seen(fathom: subprocess.Popen, flush: int, output: str | Path, *names: str) -> None:
    """Until the recording so far, which that signal asks for, has these functions."""
    end = time.monotonic() + launch.TIMEOUT
    while time.monotonic() < end:
        fathom.send_signal(flush)
        time.sleep(0.05)
        done = launch.fathom("report", output, "--json", "-n", "all")
        if done.returncode == 0 and set(names) <= {row["name"] for row in json.loads(done.stdout)["functions"]}:
            return
    raise AssertionError(f"never seen: {names}")


class Recording:
    def __init__(self, path: str | Path):
        self.path = path
        summary = recordings.report(path)
        self.sampling = summary["sampling"]
        self.functions = summary["functions"]
        self.notes = summary["notes"]
        self.processes = recordings.report(path, "--processes")["processes"]
        self._threads = self._tree = None

    @property
    def threads(self) -> list[dict]:
        if self._threads is None:
            done = launch.fathom("report", str(self.path), "--json", "-n", "all", "--threads")
            nobody = done.returncode == 12  # in modes that do not count every thread
            self._threads = [] if nobody else json.loads(done.stdout)["threads"]
        return self._threads

    def thread(self, name: str) -> dict:
        [row] = [row for row in self.threads if row["name"] == name]
        return row

    @property
    def tree(self) -> list[dict]:
        if self._tree is None:
            self._tree = recordings.report(self.path, "--tree", "--min", "0")["tree"]
        return self._tree

    def stacks(self, tid: int | None = None) -> dict[tuple[str, ...], int]:
        """{functions, outermost first: samples}, of one thread or of all."""
        rows = {row["node"]: row for row in self.tree}
        found: dict[tuple[str, ...], int] = {}
        for row in self.tree:
            if row["samples"] and tid in (None, row["thread"]):
                path, at = [], row
                while at["parent"] is not None:
                    path.append(at["name"])
                    at = rows[at["parent"]]
                key = tuple(reversed(path))
                found[key] = found.get(key, 0) + row["samples"]
        return found

    def stack_of(self, name: str) -> tuple[str, ...]:
        """The one stack that a thread had all the time, without what starts threads."""
        [stack] = self.stacks(self.thread(name)["thread"])
        return without_bootstrap(stack)

    def names(self) -> set[str]:
        return {row["name"] for row in self.functions}

    def named(self, *names: str) -> None:
        assert set(names) <= self.names(), self.names()

    def waits(self) -> list[dict]:
        return recordings.report(self.path, "--waits")["waits"]

    def spots(self) -> list[dict]:
        return recordings.report(self.path, "--spots")["spots"]

    def lines(self) -> list[dict]:
        return recordings.report(self.path, "--hot", "10000")["lines"]


def without_bootstrap(stack: tuple[str, ...]) -> tuple[str, ...]:
    return stack[3:] if stack[:3] == BOOTSTRAP else stack


def states(row: dict) -> dict[str, int]:
    """The states which a row has time in."""
    return {name: ns for name, ns in row["states_ns"].items() if ns}


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
