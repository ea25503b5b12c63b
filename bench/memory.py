"""The group memory: what `fathom run --memory` adds, beside memray and tracemalloc.

Whole processes, interleaved; each program times its own work (CPU time of all its threads), so that
starting up counts for nobody, and tells its highest resident memory. Like is paired with like:
`--memory` with `memray --trace-python-allocators`, `--memory=malloc` with memray's default;
`--memory=sampled`, which no peer has, stands for itself.
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
VARIANTS = ("plain", "fathom", "fathom-malloc", "fathom-sampled", "memray", "memray-default", "tracemalloc")
TARGET, TARGET_EACH, TARGET_MALLOC = 0.25, 0.5, 0.33
QUIET = 0.05  # of the run: what adds less is judged by its share of the run
MOST_QUIET, MOST_FIB = 0.03, 0.02
PROGRAM = peers.HERE / "programs" / "memory.py"


def environment(version: str, python: str) -> str:
    interpreter, _ = peers.environment(version, python)
    for peer in ("memray", "numpy"):
        if not peers.module_version(interpreter, peer):
            peers.run(interpreter, "-m", "pip", "install", "--quiet", peer)
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
            "fathom-sampled": fathom("fathom-sampled", "--memory=sampled"),
            "memray": memray("memray", "--trace-python-allocators"),
            "memray-default": memray("memray-default"),
            "tracemalloc": ([interpreter, "-X", "tracemalloc=1"], None)}


def once(command: list, program: str, loops: int, scratch: Path) -> dict:
    answer = scratch / "answer.json"
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("PYTHON", "FATHOM"))}
    done = subprocess.run([*map(str, command), str(PROGRAM), program, str(loops), str(answer)],
                          env={**env, "PYTHONHASHSEED": "0"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode:
        raise peers.Failure((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(answer.read_text())


def measured(build: Path, scratch: Path, version: str, python: str, rounds: int, seconds: float,
             programs: list[str], say) -> dict:
    interpreter = environment(version, python)
    all_commands = commands(build, interpreter, scratch)
    result: dict = {"memray": peers.module_version(interpreter, "memray"), "programs": {}}
    for program in programs:
        one = once([interpreter], program, 1, scratch)
        loops = max(1, round(seconds / max(one["cpu"], 1e-4)))
        times: dict = {"loops": loops, "cpu": {}, "rss": {}, "file": {}}
        for _ in range(rounds):
            for name, (command, out) in all_commands.items():
                run = once(command, program, loops, scratch)
                times["cpu"].setdefault(name, []).append(run["cpu"])
                times["rss"].setdefault(name, []).append(run["rss"])
                if out:
                    times["file"][name] = out.stat().st_size
        result["programs"][program] = times
        say(f"memory {version}  {program:10}  {shown(times, 'fathom', 'memray')} of memray, malloc "
            f"{shown(times, 'fathom-malloc', 'memray-default')}")
    return result


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


def markdown(data: dict) -> str:
    """The tables, by Python."""
    out = ["## What recording memory adds\n"] if data else []
    for version, result in data.items():
        rows, ratios = [], []
        for program, times in result["programs"].items():
            plain = min(times["cpu"]["plain"])
            ratios.append(ratio(times, "fathom", "memray"))
            rows.append([program, f"{1000 * plain:.0f} ms",
                         *(f"{100 * added(times, name) / plain:+.0f} %" for name in VARIANTS[1:]),
                         shown(times, "fathom", "memray"),
                         shown(times, "fathom-malloc", "memray-default"),
                         f"{(min(times['rss']['fathom']) - min(times['rss']['plain'])) >> 20} MB",
                         f"{times['file']['fathom'] >> 10} / {times['file']['memray'] >> 10} KB",
                         "yes" if is_reached(program, times) else "no"])
        mean = math.exp(sum(math.log(value[0]) for value in ratios) / len(ratios))
        out.append(f"Python {version}, memray {result['memray']}; geometric mean {mean:.2f} of "
                   f"memray --trace-python-allocators (target {TARGET})\n\n" + tables.table(
                       ["program", "alone", *VARIANTS[1:], "ratio", "malloc", "memory", "files",
                        "reached"], rows))
    return "\n".join(out)
