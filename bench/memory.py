"""The group memory: what `fathom run --memory` adds, beside memray, tracemalloc, scalene and memory_profiler.

Whole processes, interleaved; each program times its own work (CPU time of all its threads), so that
starting up counts for nobody, and tells its highest resident memory. Like is paired with like:
`--memory` with `memray --trace-python-allocators`, `--memory=malloc` with memray's default, and the table of lines
with memory_profiler's. scalene samples: it is shown for scale. Of each program the line that has most at the peak is compared
with memray's file, which Fathom reads, and a run of twice the length says how recordings grow.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import peers
import tables

PROGRAMS = ("churn", "tuples", "deep", "recursion", "helpers", "json", "threads", "fib", "numpy")
VARIANTS = ("plain", "fathom", "fathom-malloc", "memray", "memray-default", "tracemalloc", "scalene")
TARGET, TARGET_EACH, TARGET_MALLOC, TARGET_LINES = 0.25, 0.5, 0.33, 0.01
QUIET = 0.05  # of the run: what adds less is judged by its share of the run
MOST_QUIET, MOST_FIB = 0.03, 0.02
PROGRAM = peers.HERE / "programs" / "memory.py"
LINES = peers.HERE / "programs" / "memory_lines.py"


def environment(version: str, python: str) -> str:
    interpreter, _ = peers.environment(version, python)
    for peer in ("memray", "numpy", "scalene", "memory_profiler"):
        try:
            if not peers.module_version(interpreter, peer):
                peers.run(interpreter, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", peer)
        except peers.Failure:
            pass  # a preview of Python has not all of them: what needs it is left out
    return interpreter


def commands(build: Path, interpreter: str, scratch: Path) -> dict[str, tuple[list, Path | None]]:
    """Each variant's command in front of the program, and the file it writes."""
    def fathom(name, option):
        out = scratch / f"{name}.fathom"
        return ([build / "fathom", "run", "--quiet", option, "-f", "-o", out, "--python",
                 interpreter], out)

    def memray(name, *options):
        out = scratch / f"{name}.bin"
        return [interpreter, "-m", "memray", "run", "-q", "-f", *options, "-o", out], out

    return {"plain": ([interpreter], None),
            "fathom": fathom("fathom", "--memory"),
            "fathom-malloc": fathom("fathom-malloc", "--memory=malloc"),
            "memray": memray("memray", "--trace-python-allocators"),
            "memray-default": memray("memray-default"),
            "tracemalloc": ([interpreter, "-X", "tracemalloc=1"], None),
            "scalene": ([interpreter, "-m", "scalene", "run", "-o", scratch / "scalene.json"], None)}


def line_commands(build: Path, interpreter: str, scratch: Path) -> dict[str, list]:
    return {"plain": [interpreter],
            "fathom": [build / "fathom", "run", "--quiet", "--memory", "-f", "-o", scratch / "lines.fathom", "--python",
                       interpreter],
            "memory_profiler": [interpreter, "-m", "memory_profiler", "-o", scratch / "lines.txt"]}


def report(build: Path, path: Path) -> dict:
    done = subprocess.run([build / "fathom", "report", "--memory", "--json", "-n", "all", "--at", "peak", path],
                          capture_output=True, text=True)
    if done.returncode:
        raise peers.Failure(done.stderr.strip())
    return json.loads(done.stdout)


def at_peak(build: Path, path: Path) -> dict[tuple[str, int], int]:
    """Bytes of each line at the peak: the program's, or those of a library that it calls. What is frozen is the import system,
    which has more to do where nobody imported the same before, as memray itself does."""
    found: dict[tuple[str, int], int] = {}
    for row in report(build, path)["functions"]:
        if row["file"] and not row["file"].startswith("<") and row["peak_bytes"]:
            line = row["file"], row["line"]
            found[line] = found.get(line, 0) + row["peak_bytes"]
    return found


def once(command: list, words: list, scratch: Path) -> dict:
    answer = scratch / "answer.json"
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PYTHON", "FATHOM"))}
    done = subprocess.run([*map(str, command), *map(str, words), str(answer)],
                          env={**env, "PYTHONHASHSEED": "0"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode:
        raise peers.Failure((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(answer.read_text())


def measured(build: Path, scratch: Path, version: str, python: str, rounds: int, seconds: float,
             programs: list[str], say) -> dict:
    interpreter = environment(version, python)
    present = {peer: peers.module_version(interpreter, peer) for peer in ("memray", "scalene", "memory_profiler", "numpy")}
    all_commands = {name: command for name, command in commands(build, interpreter, scratch).items()
                    if present.get(name.partition("-")[0], "yes") and works(command[0], scratch)}
    result: dict = {**present, "programs": {}}
    for program in programs:
        if program == "numpy" and not present["numpy"]:
            continue
        result["programs"][program] = times = measured_one(all_commands, program, rounds, seconds, scratch, build)
        if "memray" in all_commands:
            say(f"memory {version}  {program:10}  {shown(times, 'fathom', 'memray')} of memray, malloc "
                f"{shown(times, 'fathom-malloc', 'memray-default')}")
    if present["memory_profiler"] and len(programs) == len(PROGRAMS):
        result["lines"] = measured_lines(line_commands(build, interpreter, scratch), rounds, seconds, scratch)
        say(f"memory {version}  lines       {tables.shown(line_ratio(result['lines']), 4)} of memory_profiler")
    return result


def works(command: list, scratch: Path) -> bool:
    """A peer may be there, and not know this Python."""
    try:
        return bool(once(command, [PROGRAM, "fib", 1], scratch))
    except peers.Failure:
        return False


def measured_one(all_commands: dict, program: str, rounds: int, seconds: float, scratch: Path, build: Path) -> dict:
    one = once(all_commands["plain"][0], [PROGRAM, program, 1], scratch)
    loops = max(1, round(seconds / max(one["cpu"], 1e-4)))
    times: dict = {"loops": loops, "cpu": {}, "rss": {}, "file": {}}
    for _ in range(rounds):
        for name, (command, out) in all_commands.items():
            run = once(command, [PROGRAM, program, loops], scratch)
            times["cpu"].setdefault(name, []).append(run["cpu"])
            times["rss"].setdefault(name, []).append(run["rss"])
            if out:
                times["file"][name] = out.stat().st_size
    if "memray" in all_commands:
        ours, theirs = (at_peak(build, all_commands[name][1]) for name in ("fathom", "memray"))
        line = max(ours, key=ours.get)
        times["peak"] = [ours[line], theirs.get(line, 0)]
    once(all_commands["fathom"][0], [PROGRAM, program, 2 * loops], scratch)
    times["twice"] = all_commands["fathom"][1].stat().st_size
    return times


def measured_lines(all_commands: dict, rounds: int, seconds: float, scratch: Path) -> dict:
    """memory_profiler has a tenth of the rounds and of the work, and its time is scaled up: noise is in Fathom's favour."""
    one = once(all_commands["plain"], [LINES, 1], scratch)
    loops = max(10, round(seconds / max(one["cpu"], 1e-5)))
    cpu: dict = {}
    for name, command in all_commands.items():
        part = 10 if name == "memory_profiler" else 1
        for _ in range(1 if part > 1 else rounds):
            run = once(command, [LINES, max(1, loops // part)], scratch)
            cpu.setdefault(name, []).append(run["cpu"] * part)
    return {"loops": loops, "cpu": cpu}


def line_ratio(times: dict) -> tuple[float, bool]:
    return ratio(times, "fathom", "memory_profiler")


def added(times: dict, name: str) -> float:
    return min(times["cpu"][name]) - min(times["cpu"]["plain"])


def ratio(times: dict, ours: str, theirs: str) -> tuple[float, bool] | None:
    """As in tables.py: below a hundredth of the program's own time is noise."""
    floor = tables.NOISE * min(times["cpu"]["plain"])
    a, b = added(times, ours), added(times, theirs)
    return max(a, floor) / max(b, floor), a < floor or b < floor


def shown(times: dict, ours: str, theirs: str) -> str:
    return tables.shown(ratio(times, ours, theirs))


def is_reached(program: str, times: dict) -> bool:
    plain, ours, theirs = (min(times["cpu"]["plain"]), added(times, "fathom-malloc"),
                           added(times, "memray-default"))
    malloc = (ours <= TARGET_MALLOC * theirs if theirs > QUIET * plain
              else ours <= MOST_QUIET * plain)
    each = ratio(times, "fathom", "memray")[0] <= TARGET_EACH
    return malloc and each and (program != "fib" or added(times, "fathom") <= MOST_FIB * plain)


def row_of(program: str, times: dict, variants: list[str]) -> list[str]:
    plain = min(times["cpu"]["plain"])
    more = min(times["rss"]["fathom"]) - min(times["rss"]["plain"])
    row = [program, f"{1000 * plain:.0f} ms", *(f"{100 * added(times, name) / plain:+.0f} %" for name in variants)]
    if "memray" not in variants:
        return [*row, f"{more / (1 << 20):.1f} MB"]
    ours, theirs = times["peak"]
    return [*row, shown(times, "fathom", "memray"), shown(times, "fathom-malloc", "memray-default"),
            f"{more / (1 << 20):.1f} MB", f"{times['file']['fathom'] >> 10} / {times['file']['memray'] >> 10} KB",
            f"{100 * (times['twice'] / times['file']['fathom'] - 1):+.0f} %",
            "equal" if ours == theirs else f"{100 * (ours / theirs - 1):+.1f} %" if theirs else "–",
            "yes" if is_reached(program, times) else "no"]


def markdown(data: dict) -> str:
    """The tables, by Python."""
    out = ["## What recording memory adds\n"] if data else []
    for version, result in data.items():
        first = next(iter(result["programs"].values()))
        variants = [name for name in VARIANTS[1:] if name in first["cpu"]]
        head = ["program", "alone", *variants]
        title = f"Python {version}"
        if result["memray"]:
            ratios = [ratio(times, "fathom", "memray")[0] for times in result["programs"].values()]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            title += (f", memray {result['memray']}; geometric mean {mean:.2f} of memray --trace-python-allocators "
                      f"(target {TARGET})")
            head += ["ratio", "malloc", "memory", "files", "twice as long", "line at the peak", "reached"]
        else:
            head += ["memory"]
        out.append(f"{title}\n\n" + tables.table(head, [row_of(program, times, variants)
                                                        for program, times in result["programs"].items()]))
        if "lines" in result:
            out.append(f"Lines with their memory: {tables.shown(line_ratio(result['lines']), 4)} of memory_profiler "
                       f"{result['memory_profiler']} (target {TARGET_LINES})\n")
    return "\n".join(out)
