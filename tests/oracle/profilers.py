"""The profilers that the oracle knows: how each is attached to a process, and how its output is read.

Each gives a Profile: stacks with their number of samples, and what it says itself of errors. All are
asked for wall time of all threads, idle ones too, so that all answer the same question; or, where a
program is about the GIL, for the thread that holds it.

py-spy and austin come from the package index into a virtual environment below the cache folder, once;
`profiling.sampling` is part of Python 3.15 and can watch only that.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FATHOM = os.environ.get("FATHOM") or str(ROOT / "build" / "fathom")
MAX = 0.0  # the rate "as fast as it goes"
LATE = 4.0  # seconds for starting and writing; then a profiler is interrupted


class Failed(Exception):
    """One sentence: the profiler did not do it."""


@dataclass
class Profile:
    stacks: list = field(default_factory=list)  # [(((function, file, line), …), samples)]
    times: list = field(default_factory=list)   # the same with nanoseconds, where it weighs samples
    partial: int = 0     # samples of which it kept, and says so, only the outer functions
    errors: int = 0      # what the profiler calls so: stacks it could not read, samples it missed
    attempts: int = 0    # of which there were so many
    rounds: int = 0      # how often it looked at the process, as far as it says
    seconds: float = 0.0  # of wall time that it sampled
    cpu: float = 0.0     # seconds of processor time that it took, start and end included
    says: str = ""       # its own words, on standard error
    window: tuple | None = None  # from when to when it sampled, in monotonic ns, if it says so
    unseen: float = 1.0  # the part of its looks, of those asked for, that it did not make; 1: not known


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "fathom" / "bench"


def provide() -> Path:
    """The folder with py-spy and austin."""
    folder = cache_folder() / "samplers"
    if not (folder / "bin" / "py-spy").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for words in ([sys.executable, "-m", "venv", folder],
                      [folder / "bin" / "pip", "install", "--quiet", "py-spy", "austin-dist"]):
            done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Failed((done.stdout.strip().splitlines() or ["no output"])[-1])
    return folder / "bin"


def run(words: list, timeout: float, good: str = "") -> str:
    """Its standard error and output; Failed if it failed, unless it said `good` words first. When the
    time is over it is interrupted as by Ctrl-C: py-spy goes on until it has as many samples as were
    asked for, however long that takes."""
    try:
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace")
    except OSError as error:
        raise Failed(str(error)) from None
    with process:
        for number in (signal.SIGINT, signal.SIGKILL, None):
            try:
                text, _ = process.communicate(timeout=timeout)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                timeout = 15
    if process.returncode == -signal.SIGKILL:
        raise Failed("did not end when its time was over, nor when interrupted")
    if process.returncode and not (good and good in text):
        lines = [line for line in text.strip().splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"status {process.returncode}")
    return text


def cpu_of_children() -> float:
    """Of those that have ended: the program being profiled has not."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# ---------------------------------------------------------------- readers

FRAME_NAME_FIRST = re.compile(r"(.*) \((.*?)(?::(\d+))?\)$")
FRAME_FILE_FIRST = re.compile(r"(.*):([^:]+):(-?\d+)$")


def frame(text: str) -> tuple[str, str, int] | None:
    """`name (file:line)`, `file:name:line` or a bare name; None for what is not a function."""
    if text.startswith(("tid:", "thread (", "Thread ", "process ", "pid:")):
        return None
    found = FRAME_NAME_FIRST.match(text)
    if found:
        return found[1], found[2], int(found[3] or 0)
    found = FRAME_FILE_FIRST.match(text)
    if found:
        return found[2], found[1], int(found[3])
    return text, "", 0


def collapsed(path: Path) -> list:
    """The lines `frame;frame count` of a file."""
    stacks, known = [], {}
    for line in path.read_text(errors="replace").splitlines():
        text, _, count = line.rpartition(" ")
        if not text or not count.isdigit():
            continue  # a comment, or a name read from the wrong place that held an end of line
        stack = []
        for part in text.split(";"):
            if part not in known:
                known[part] = frame(part)
            if known[part]:
                stack.append(known[part])
        stacks.append((tuple(stack), int(count)))
    return stacks


class Mojo:
    """Austin's binary output: strings and frames defined once, stacks as references to them."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 4
        if data[:3] != b"MOJ":
            raise Failed("not austin's format")
        self.version = data[3]

    def number(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        negative, value, shift = byte & 0x40, byte & 0x3F, 6
        while byte & 0x80:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        return -value if negative else value

    def string(self) -> str:
        end = self.data.index(0, self.at)
        text = self.data[self.at:end].decode(errors="replace")
        self.at = end + 1
        return text

    def stacks(self) -> list:
        strings: dict[int, str] = {1: "?"}
        frames: dict[int, tuple] = {}
        counts: dict[tuple, int] = {}
        stack: list | None = None

        def keep() -> None:
            if stack is not None:
                key = tuple(stack)
                counts[key] = counts.get(key, 0) + 1

        try:
            while self.at < len(self.data):
                event = self.data[self.at]
                self.at += 1
                if event == 1:    # metadata
                    self.string()
                    self.string()
                elif event == 2:  # a stack begins: process, interpreter, thread
                    keep()
                    self.number()
                    if self.version >= 3:
                        self.number()
                    self.string()
                    stack = []
                elif event == 3:  # a frame's definition
                    key, file, scope, line = (self.number() for _ in range(4))
                    if self.version >= 2:
                        for _ in range(3):
                            self.number()
                    frames[key] = (strings.get(scope, "?"), strings.get(file, "?"), line)
                elif event == 4:
                    stack.append(("<invalid>", "", 0))
                elif event == 5:
                    stack.append(frames[self.number()])
                elif event == 6:  # of the kernel
                    self.string()
                elif event in (9, 10):
                    self.number()
                elif event == 11:
                    key = self.number()
                    strings[key] = self.string()
                elif event == 12:
                    self.number()
                elif event not in (7, 8):
                    raise Failed(f"austin's event {event} at byte {self.at - 1} is not known")
        except (IndexError, ValueError, KeyError):
            pass  # cut off at the end
        keep()
        return list(counts.items())


# ---------------------------------------------------------------- profilers

class Profiler:
    name = ""
    suffix = ".txt"
    good = ""

    def can(self, _version: str) -> bool:
        """Is it here, and does it know that Python?"""
        return True

    def command(self, pid: int, rate: float, seconds: float, output: Path, mode: str) -> list:
        raise NotImplementedError

    def read(self, output: Path, says: str) -> Profile:
        raise NotImplementedError

    def profile(self, pid: int, rate: float, seconds: float, output: Path, mode: str) -> Profile:
        output = output.with_suffix(self.suffix)
        output.unlink(missing_ok=True)
        words = self.command(pid, rate, seconds, output, mode)
        start, cpu = time.monotonic(), cpu_of_children()
        says = run(words, seconds + LATE, self.good)
        taken, cpu = time.monotonic() - start, cpu_of_children() - cpu
        profile = self.read(output, says)
        profile.seconds = taken if taken > seconds + LATE else seconds
        profile.cpu = cpu
        return profile


class Fathom(Profiler):
    name, suffix = "fathom", ".fathom"

    def command(self, pid, rate, seconds, output, mode):
        return [FATHOM, "attach", pid, "--rate", rate if rate else "max", "--duration", seconds,
                "-q", "-o", output, *(["--gil"] if mode == "gil" else [])]

    def read(self, output, says):
        data = json.loads(run([FATHOM, "report", output, "--json", "--tree", "-n", "all"], 60))
        profile, paths = Profile(says=says), {}
        for node in data["tree"]:
            frame = (node["qualname"], node["file"], node["line"])
            above = paths.get(node["parent"], ())
            paths[node["node"]] = above if node["name"] == "<thread>" else (*above, frame)
            if node["samples"]:
                profile.stacks.append((paths[node["node"]], node["samples"]))
                profile.times.append((paths[node["node"]], node["self_ns"]))
        [process, *_] = json.loads(run([FATHOM, "report", output, "--json", "--processes"], 60))["processes"]
        start_ns = process["start_ns"] - (time.time_ns() - time.monotonic_ns())
        profile.window = start_ns, start_ns + process["wall_ns"]
        sampling = data["sampling"]
        if sampling["asked_hz"]:
            profile.unseen = max(0.0, 1 - sampling["rounds"] * 1e9 / (sampling["asked_hz"] * process["wall_ns"]))
        profile.errors, profile.partial = sampling["lost"], sampling["partial"]
        profile.attempts = sampling["samples"] + sampling["lost"]
        profile.rounds = sampling["rounds"]
        return profile


class PySpy(Profiler):
    name, suffix = "py-spy", ".raw"
    fastest = 20_000
    options: tuple = ()

    def command(self, pid, rate, seconds, output, mode):
        return [provide() / "py-spy", "record", "-p", pid, "-r", int(rate or self.fastest), "-d",
                max(1, round(seconds)), "-f", "raw", "--full-filenames", "-o", output,
                "--gil" if mode == "gil" else "--idle", *self.options]

    def read(self, output, says):
        profile = Profile(collapsed(output), says=says)
        found = re.search(r"Samples: (\d+) Errors: (\d+)", says)
        if found:
            profile.errors = int(found[2])
            profile.attempts = profile.rounds = int(found[1]) + int(found[2])
        return profile


class PySpyNonblocking(PySpy):
    name, options = "py-spy --nonblocking", ("--nonblocking",)


class Austin(Profiler):
    name, suffix = "austin", ".mojo"
    good = "Sampling Statistics"  # its status is 1 when the time is up
    starter: list | None = None

    def can(self, version):
        return version != "3.15"  # "Cannot determine the version of the Python interpreter"

    def start(self) -> list:
        """Austin's own words, or, where the system's C library is too old for it, the loader and
        library of one of the Pythons that tools/pythons provides."""
        if Austin.starter is None:
            program = str(provide() / "austin")
            tried = [[program]]
            for loader in sorted(cache_folder().parent.glob("pythons/*/usr/lib64/ld-linux*")):
                tried.append([str(loader), "--library-path",
                              str(loader.parents[1] / "lib" / "x86_64-linux-gnu"), program])
            for words in tried:
                if subprocess.run([*words, "--version"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode == 0:
                    Austin.starter = words
                    break
            else:
                raise Failed("austin does not start here")
        return Austin.starter

    def command(self, pid, rate, seconds, output, mode):
        interval = round(1_000_000 / rate) if rate else 1
        return [*self.start(), "-i", interval, "-p", pid, "-x", max(1, round(seconds)), "-o", output,
                *(["-c"] if mode == "gil" else [])]

    def read(self, output, says):
        profile = Profile(Mojo(output.read_bytes()).stacks(), says=says)
        found = re.search(r"(\d+)/(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", says))
        if found:
            profile.errors, profile.attempts = int(found[1]), int(found[2])
        return profile


class Tachyon(Profiler):
    """Python's own, of 3.15."""

    name, suffix = "profiling.sampling", ".collapsed"
    fastest = 100_000

    def can(self, version):
        return version == "3.15"

    def command(self, pid, rate, seconds, output, mode):
        python = os.readlink(f"/proc/{pid}/exe")
        return [python, "-m", "profiling.sampling", "attach", "-r", int(rate or self.fastest), "-d",
                max(1, round(seconds)), "-a", "--mode", mode, "--collapsed", "-o", output, pid]

    def read(self, output, says):
        profile = Profile(collapsed(output), says=says)
        captured = re.search(r"Captured (\d+) samples", says)
        wrong = re.search(r"Error rate: ([\d.]+)", says)
        if captured:
            profile.attempts = profile.rounds = int(captured[1])
            profile.errors = round(int(captured[1]) * float(wrong[1]) / 100) if wrong else 0
        return profile


ALL = {each.name: each for each in (Fathom(), PySpy(), PySpyNonblocking(), Austin(), Tachyon())}
