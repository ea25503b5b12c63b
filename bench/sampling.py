"""The group `sampling`: attaching from outside, beside py-spy, austin and Python's own sampler.

Four questions: how many samples a second at most, and how many of them wrong; how much processor
time the profiler takes; how much slower the program gets; how long until the first sample. The
profilers, and the programs whose possible stacks are known, are those of the oracle (tests/oracle).
All measurements take turns, and the best of several counts: the machine is noisy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import peers
import tables

sys.path.insert(0, str(peers.ROOT / "tests" / "oracle"))

import profilers
import truth

Failed = profilers.Failed

PROGRAMS = peers.HERE / "programs" / "sampling"
PARTS = ("rate", "cpu", "slowdown", "latency")
VERSIONS = ("3.12", "3.15")  # without --pythons: four parts take some minutes on each

TARGET_RATE = 1.0       # × the best peer's
TARGET_CPU = 0.30       # of py-spy's
TARGET_SLOWER = 0.02    # at 1 kHz
TARGET_SLOWER_PEER = 0.1  # … of py-spy's
TARGET_LATENCY = 0.050  # seconds
MODULES = 1000


def interpreters(versions: str | None) -> dict[str, str]:
    """{"3.12": path} of the wanted versions, or of VERSIONS as far as they are here."""
    found = truth.interpreters()
    chosen = versions.split(",") if versions else [each for each in VERSIONS if each in found]
    missing = [version for version in chosen if version not in found]
    if missing:
        raise peers.Failure(f"no Python {', '.join(missing)} here; see tools/pythons list")
    return {version: found[version] for version in chosen}


class Default(profilers.PySpy):
    """py-spy as it is without options: it leaves idle threads out, which is less work."""

    name = "py-spy"

    def command(self, pid, rate, seconds, output, mode):
        return [word for word in super().command(pid, rate, seconds, output, mode)
                if word != "--idle"]


class DefaultNonblocking(Default):
    name, options = "py-spy --nonblocking", ("--nonblocking",)


class Eager(profilers.Tachyon):
    """Asked for more than it can do, as it keeps fewer samples when asked for what it can."""

    name, fastest = "profiling.sampling, 1 MHz", 1_000_000


TOOLS = (profilers.ALL["fathom"], Default(), DefaultNonblocking(), profilers.ALL["austin"],
         profilers.ALL["profiling.sampling"])
FASTEST = (profilers.ALL["fathom"], profilers.ALL["py-spy"], profilers.ALL["py-spy --nonblocking"],
           profilers.ALL["austin"], profilers.ALL["profiling.sampling"], Eager())


class Wake:
    """No profiler: only wakes on the program's processor (bench/wake.c). What that costs is the floor of Fathom's way."""

    name, suffix, good = "waking only", ".txt", ""

    def __init__(self, scratch: Path):
        self.program = scratch / "wake"
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-I", str(peers.ROOT / "src"), "-o", str(self.program),
                        str(peers.HERE / "wake.c"), str(peers.ROOT / "src" / "watch" / "os" / "seat.c")], check=True)

    def command(self, pid, rate, _seconds, _output, _mode):
        return [self.program, pid, rate]


class Target:
    """A program of bench/programs/sampling that runs until it is left."""

    def __init__(self, python: str, name: str, *arguments: object):
        self.process = subprocess.Popen(
            [python, "-B", "-E", str(PROGRAMS / f"{name}.py"), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        if self.process.stdout.readline().strip() != "ready":
            raise peers.Failure(f"{name} did not start under {python}")
        self.pid = self.process.pid

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_exception) -> None:
        # A profiler that stops the program may have left it stopped.
        os.kill(self.pid, signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self) -> list[float]:
        self.process.stdin.write("\n")
        return [float(word) for word in self.process.stdout.readline().split()]


class Sampling:
    """Runs the parts; `data` is plain."""

    def __init__(self, build: Path, rounds: int, quick: bool, say, attempt):
        profilers.FATHOM = str(build / "fathom")
        self.rounds, self.quick, self.say, self.attempt = rounds, quick, say, attempt
        self.data: dict = {"rate": {}, "cpu": {}, "slowdown": {}, "latency": {}}

    def tools(self, version: str, tools=TOOLS) -> list:
        return [tool for tool in tools if tool.can(version)]

    def run(self, version: str, python: str, parts: set[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch:
            for part in PARTS:
                if part in parts:
                    self.attempt(f"sampling/{part} on {version}", getattr(self, part), version,
                                 python, Path(scratch))

    # ------------------------------------------------------------ the highest rate

    def rate(self, version: str, python: str, scratch: Path) -> None:
        """Samples kept in a second of one busy thread, on a loop and on short functions."""
        found = self.data["rate"].setdefault(version, {})
        seconds = 1 if self.quick else 3
        for _ in range(max(2, self.rounds // 2)):
            for program in ("seventy_thirty", "short"):
                for tool in self.tools(version, FASTEST):
                    result = self.attempt(f"rate of {tool.name} on {version}", self.rate_of, tool,
                                          program, python, seconds, scratch)
                    if result:
                        found.setdefault(program, {}).setdefault(tool.name, []).append(result)
        for program, results in found.items():
            text = ", ".join(f"{name} {max(rights(each) for each in runs):,.0f}"
                             for name, runs in results.items())
            self.say(f"sampling/rate  {version}  {program}: {text}")

    def rate_of(self, tool, program: str, python: str, seconds: int, scratch: Path) -> dict:
        with truth.Program(program, python) as target:
            profile = tool.profile(target.pid, profilers.MAX, seconds, scratch / "rate", "wall")
            possible = truth.Possible(program, target.says)
        kept = sum(count for _, count in profile.stacks)
        wrong = sum(count for stack, count in profile.stacks
                    if not possible(possible.symbols(stack)))
        return {"kept": kept / profile.seconds, "impossible": wrong / profile.seconds,
                "per_cpu": kept / max(profile.cpu, 1e-3),
                "errors": profile.errors, "attempts": profile.attempts or kept}

    # ------------------------------------------------------------ what the profiler takes

    def cpu(self, version: str, python: str, scratch: Path) -> None:
        """CPU time of the profiler, from its start to its end, for a profile of some seconds."""
        found = self.data["cpu"].setdefault(version, {})
        for threads, busy in ((1, 1), (10, 1), (10, 2), (200, 1), (200, 2)):
            with Target(python, "threads", threads, busy) as target:
                time.sleep(0.5)
                for rate in (100, 1000):
                    key = f"{threads} threads, {busy} busy, {rate} Hz"
                    for _ in range(1 if self.quick else 2):
                        for tool in self.tools(version):
                            result = self.attempt(f"CPU of {tool.name} on {version}", cpu_of, tool,
                                                  target.pid, rate, threads,
                                                  3 if self.quick else 5, scratch)
                            if result:
                                found.setdefault(key, {}).setdefault(tool.name, []).append(result)
                    text = ", ".join(f"{name} {1000 * best(runs, 'cpu'):.1f} ms/s"
                                     for name, runs in found.get(key, {}).items())
                    self.say(f"sampling/cpu  {version}  {key}: {text}")

    # ------------------------------------------------------------ what the program loses

    def slowdown(self, version: str, python: str, scratch: Path) -> None:
        """The same work in one process, alone and watched in turn. Alone is measured twice a round:
        how far those two are apart is what cannot be told from nothing."""
        seconds = 0.5 if self.quick else 1.0
        variants = [("alone", None, 0), ("alone again", None, 0)]
        variants += [(f"{tool.name}, {rate} Hz", tool, rate)
                     for tool in [Wake(scratch), *self.tools(version)] for rate in (100, 1000)]
        found: dict = {}
        with Target(python, "work", seconds) as target:
            for number in range(3 if self.quick else max(8, self.rounds)):
                shift = number % len(variants)
                for title, tool, rate in variants[shift:] + variants[:shift]:
                    times = self.attempt(f"slowdown by {title} on {version}", watched, target, tool,
                                         rate, seconds, scratch)
                    if times:
                        found.setdefault(title, []).append(times)
        self.data["slowdown"][version] = found
        text = ", ".join(f"{title} {100 * slower(found, title):+.1f} %" for title in found)
        self.say(f"sampling/slowdown  {version}  {text}")

    # ------------------------------------------------------------ how soon

    def latency(self, version: str, python: str, scratch: Path) -> None:
        """Wall time of the whole command that shows or records the stacks once."""
        found = self.data["latency"].setdefault(version, {})
        with Target(python, "modules", MODULES) as target:
            executable = os.readlink(f"/proc/{target.pid}/exe")
            commands = {
                "fathom attach --rounds 1": [profilers.FATHOM, "attach", target.pid, "--rounds", 1,
                                             "-q", "-o", scratch / "first.fathom"],
                "py-spy dump": [profilers.provide() / "py-spy", "dump", "-p", target.pid],
                "py-spy dump --nonblocking": [profilers.provide() / "py-spy", "dump",
                                              "--nonblocking", "-p", target.pid],
            }
            if version != "3.15":
                commands["austin --where"] = [*profilers.ALL["austin"].start(), "-w", target.pid]
            else:
                commands["profiling.sampling dump"] = [executable, "-m", "profiling.sampling",
                                                       "dump", target.pid]
            for _ in range(5 if self.quick else 10):
                for title, words in commands.items():
                    (scratch / "first.fathom").unlink(missing_ok=True)
                    wall = self.attempt(f"{title} on {version}", wall_of, words)
                    if wall:
                        found.setdefault(title, []).append(wall)
        text = ", ".join(f"{title} {1000 * min(walls):.1f} ms" for title, walls in found.items())
        self.say(f"sampling/latency  {version}  {text}")


def start(words: list) -> subprocess.Popen:
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")


def end(process: subprocess.Popen, words: list, good: str = ""):
    """Waits for it; the resources it used, its children included, and what it said."""
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode and not (good and good in text):
        last = (text.strip().splitlines() or [f"status {process.returncode}"])[-1]
        raise peers.Failure(f"{Path(str(words[0])).name}: {last}")
    return usage, text


def cpu_of(tool, pid: int, rate: int, threads: int, seconds: int, scratch: Path) -> dict:
    """CPU seconds for each second of wall time, and for each time that it looked at the process. A
    profiler that cannot keep up is interrupted some time later: py-spy would go on until it has all
    samples."""
    output = (scratch / "cpu").with_suffix(tool.suffix)
    output.unlink(missing_ok=True)
    words = tool.command(pid, rate, seconds, output, "wall")
    begin, process = time.perf_counter(), start(words)
    timer = threading.Timer(seconds + profilers.LATE, process.send_signal, [signal.SIGINT])
    timer.start()
    try:
        usage, text = end(process, words, tool.good)
    finally:
        timer.cancel()
    wall, cpu = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
    wall = wall if wall > seconds + profilers.LATE else seconds
    profile = tool.read(output, text)
    samples = sum(count for _, count in profile.stacks)
    rounds = profile.rounds or samples / threads  # austin does not say; it keeps every thread
    return {"cpu": cpu / wall, "round": cpu / max(1, rounds), "rounds": rounds / wall,
            "samples": samples / wall}


def wall_of(words: list) -> float:
    begin = time.perf_counter()
    end(start(words), words)
    return time.perf_counter() - begin


def watched(target: Target, tool, rate: int, seconds: float, scratch: Path) -> list[float]:
    """[wall, CPU] of one piece of work; the profiler has started before and ends after."""
    if tool is None:
        time.sleep(0.3)
        return target.ask()
    output = (scratch / "slow").with_suffix(tool.suffix)
    output.unlink(missing_ok=True)
    words = tool.command(target.pid, rate, 30, output, "wall")
    process = start(words)
    time.sleep(0.7)
    times = target.ask()
    if process.poll() is not None:
        end(process, words)
        raise peers.Failure(f"{tool.name} ended before the work did")
    process.send_signal(signal.SIGINT)
    end(process, words, tool.good)
    return times


# ---------------------------------------------------------------- tables

def best(runs: list[dict], key: str) -> float:
    return min(run[key] for run in runs)


def rights(run: dict) -> float:
    """Samples a second that can be true."""
    return run["kept"] - run["impossible"]


def slower(found: dict, title: str, clock: int = 0) -> float:
    """What the best time of a variant is above that of the program alone, as a share."""
    alone = min(times[clock] for name in ("alone", "alone again") for times in found[name])
    return min(times[clock] for times in found[title]) / alone - 1


def noise(found: dict, clock: int = 0) -> float:
    first, second = (min(times[clock] for times in found[name]) for name in ("alone", "alone again"))
    return abs(first - second) / min(first, second)


def rate_table(rate: dict) -> str:
    rows = []
    for version, programs in rate.items():
        for program, results in programs.items():
            peak = {name: max(runs, key=rights) for name, runs in results.items()}
            others = [rights(run) for name, run in peak.items() if name != "fathom"]
            for name, run in peak.items():
                ratio = rights(run) / max(others) if others and name == "fathom" else None
                rows.append([f"{version}, {program}, {name}", f"{run['kept']:,.0f}",
                             f"{100 * run['errors'] / max(1, run['attempts']):.2f} %",
                             f"{100 * run['impossible'] / max(1, run['kept']):.3f} %",
                             f"{rights(run):,.0f}", f"{run['per_cpu']:,.0f}", "" if ratio is None else
                             f"{ratio:.2f}×, {reached(ratio >= TARGET_RATE, '> 1×')}"])
    return tables.table(["Python, program, profiler", "samples/s", "errors", "impossible",
                         "possible/s", "per CPU second", "÷ best peer"], rows)


def reached(good: bool, target: str) -> str:
    return f"{'reached' if good else 'NOT reached'} ({target})"


def cpu_table(cpu: dict, key: str, scale: float, digits: int) -> str:
    """`key` is "cpu" or "round"."""
    names = [tool.name for tool in TOOLS]
    rows = []
    for version, cases in cpu.items():
        for case, results in cases.items():
            cells = [f"{scale * best(results[name], key):,.{digits}f}" if name in results else "–"
                     for name in names]
            rows.append([f"{version}, {case}", *cells, *ratios(results, key)])
    return tables.table(["Python, threads, rate", *names, "Fathom ÷ py-spy", "target"], rows)


def ratios(results: dict, key: str) -> list[str]:
    if "fathom" not in results or "py-spy" not in results:
        return ["–", "–"]
    ratio = best(results["fathom"], key) / max(1e-9, best(results["py-spy"], key))
    return [f"{ratio:.3f}", reached(ratio <= TARGET_CPU, "≤ 0.30")]


def rounds_table(cpu: dict) -> str:
    """Rounds and samples of threads, the most of the runs."""
    names = [tool.name for tool in TOOLS]
    rows = [[f"{version}, {case}",
             *(f"{most(results[name], 'rounds'):,.0f}, {most(results[name], 'samples'):,.0f}"
               if name in results else "–" for name in names)]
            for version, cases in cpu.items() for case, results in cases.items()]
    return tables.table(["Python, threads, rate", *names], rows)


def most(runs: list[dict], key: str) -> float:
    return max(run[key] for run in runs)


def slowdown_table(slowdown: dict) -> str:
    rows = []
    for version, found in slowdown.items():
        for title in found:
            if not title.startswith("alone"):
                rows.append([f"{version}, {title}", f"{100 * slower(found, title):+.2f} %",
                             f"{100 * slower(found, title, 1):+.2f} %",
                             slowdown_verdict(found, title)])
        rows.append([f"{version}, alone, twice", f"{100 * noise(found):.2f} %",
                     f"{100 * noise(found, 1):.2f} %", "what cannot be told from nothing"])
    return tables.table(["Python, profiler, rate", "wall", "CPU", "target"], rows)


def slowdown_verdict(found: dict, title: str) -> str:
    if not title.startswith("fathom"):
        return ""
    if title.endswith("100 Hz"):
        limit = max(noise(found), 0.005)
        return reached(slower(found, title) <= limit, f"≤ {100 * limit:.1f} %, the noise")
    peer = TARGET_SLOWER_PEER * slower(found, title.replace("fathom", "py-spy"))
    return (reached(slower(found, title) <= TARGET_SLOWER, "≤ 2 %") + ", "
            + reached(slower(found, title) <= peer, "≤ a tenth of py-spy's"))


def latency_table(latency: dict) -> str:
    rows = []
    for version, found in latency.items():
        for title, walls in found.items():
            rows.append([f"{version}, {title}", f"{1000 * min(walls):.1f} ms",
                         f"{1000 * sorted(walls)[len(walls) // 2]:.1f} ms",
                         reached(min(walls) < TARGET_LATENCY, "< 50 ms")
                         if title.startswith("fathom") else ""])
    return tables.table(["Python, command", "best", "median", "target"], rows)


def markdown(data: dict) -> str:
    """All tables of the group."""
    parts = []
    for title, key, table in (
            ("Sampling: samples a second, one busy thread, as fast as it goes", "rate", rate_table),
            ("Sampling: CPU of the profiler, ms for each second, start and end included", "cpu",
             lambda cpu: cpu_table(cpu, "cpu", 1e3, 1)),
            ("Sampling: CPU of the profiler, µs for each look at the process (keeping up or not)",
             "cpu", lambda cpu: cpu_table(cpu, "round", 1e6, 0)),
            ("Sampling: looks at the process, and stacks kept, per second", "cpu", rounds_table),
            ("Sampling: how much slower the program gets", "slowdown", slowdown_table),
            (f"Sampling: wall time of one look at a process with {MODULES:,} modules", "latency",
             latency_table)):
        if data.get(key):
            parts.append(f"### {title}\n\n{table(data[key])}")
    return "\n".join(parts)
