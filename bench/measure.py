"""The measurements of the groups calls, lines, floor, whole and report. All give plain data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import peers

CALLS = ["baseline", "cprofile", "fathom", "cprofile-python", "fathom-python"]
YAPPI = ["yappi", "yappi-python"]
FLOOR = ["empty", "clock", "empty-python", "clock-python"]
LINES = ["baseline", "line_profiler", "fathom-lines", "fathom-all"]
PPROFILE = ["pprofile"]
LINES_FLOOR = ["empty-lines", "clock-lines"]
SLOW_ROUNDS = 1  # in all, for yappi and pprofile: they are slow, their times far above the noise

PSTATS_FUNCTIONS = 50_000


class Setting:
    """What every measurement needs to know."""

    def __init__(self, build: Path, programs: Path, scratch: Path, rounds: int, seconds: float):
        self.build, self.programs, self.scratch = build, programs, scratch
        self.rounds, self.seconds = rounds, seconds
        self.fathom = str(build / "fathom")

    def environment(self, *folders: object) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("PYTHON", "FATHOM"))}
        path = os.pathsep.join(str(folder) for folder in (peers.HERE, *folders))
        return {**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


# ---------------------------------------------------------------- in one process

def in_process(setting: Setting, interpreter: str, floor: Path | None, program: str,
               variants: list[str]) -> dict:
    """Every variant of one program, in two fresh processes that share the rounds."""
    result: dict = {"loops": 0, "calls": {}, "cpu": {}, "wall": {}}
    shares = [setting.rounds - setting.rounds // 2, setting.rounds // 2]
    for number, rounds in enumerate(share for share in shares if share):
        job = {"program": program, "pyperformance": str(setting.programs), "variants": variants,
               "rounds": rounds, "slow_rounds": 0 if number else SLOW_ROUNDS,
               "loops": result["loops"], "seconds": setting.seconds, "count": number == 0}
        done = worker(setting, interpreter, floor, job)
        result["loops"] = done["loops"]
        result["calls"].update(done["calls"])
        for times in done["rounds"]:
            for variant, (cpu, wall) in times.items():
                result["cpu"].setdefault(variant, []).append(cpu)
                result["wall"].setdefault(variant, []).append(wall)
    return result


def worker(setting: Setting, interpreter: str, floor: Path | None, job: dict) -> dict:
    question, answer = setting.scratch / "job.json", setting.scratch / "result.json"
    question.write_text(json.dumps(job))
    folders = [setting.build / "python", *([floor] if floor else [])]
    done = subprocess.run([interpreter, str(peers.HERE / "worker.py"), str(question), str(answer)],
                          env=setting.environment(*folders), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=setting.scratch)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise peers.Failure(f"{job['program']}: {last}")
    return json.loads(answer.read_text())


# ---------------------------------------------------------------- whole processes

def timed(command: list[object], environment: dict[str, str], stdin: str = "",
          keep: bool = False) -> dict:
    """Wall seconds, CPU seconds of it and its children, peak bytes; and what it printed."""
    source = subprocess.PIPE if stdin else subprocess.DEVNULL
    target = subprocess.PIPE if keep else subprocess.DEVNULL
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], env=environment, stdin=source,
                               stdout=target, stderr=subprocess.DEVNULL, text=True)
    if stdin:
        process.stdin.write(stdin)
        process.stdin.close()
    text = process.stdout.read() if keep else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdout:
        process.stdout.close()
    if process.returncode != 0:
        words = " ".join(str(word) for word in command[:4])
        raise peers.Failure(f"{words} …: status {process.returncode}")
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024, "text": text}


def whole(setting: Setting, python: str, program: str, loops: int) -> dict:
    """The program plain, under `python -m cProfile -o` and under `fathom run --calls -o`."""
    script = [peers.HERE / "whole.py", program, loops, setting.programs]
    prof, recording = setting.scratch / "whole.prof", setting.scratch / "whole.fathom"
    commands = {
        "baseline": [python, *script],
        "cprofile": [python, "-m", "cProfile", "-o", prof, *script],
        "fathom": [setting.fathom, "run", "--calls", "-q", "--force", "-o", recording,
                   "--python", python, *script],
    }
    result: dict = {"loops": loops, "wall": {}, "cpu": {}}
    for _ in range(max(2, setting.rounds // 2)):
        for variant, command in commands.items():
            times = timed(command, setting.environment())
            result["wall"].setdefault(variant, []).append(times["wall"])
            result["cpu"].setdefault(variant, []).append(times["cpu"])
    return result


# ---------------------------------------------------------------- reports

def large_pstats(setting: Setting) -> Path:
    """The large pstats file. Another process writes it, for what this one has ever held would be
    counted into the peak memory of those that it starts."""
    path = setting.scratch / "large.prof"
    if not path.exists():
        subprocess.run([sys.executable, str(peers.HERE / "large_pstats.py"), str(PSTATS_FUNCTIONS),
                        str(path)], check=True)
    return path


def reports(setting: Setting, python: str) -> dict:
    """`fathom report` beside `python -m pstats` on one large pstats file."""
    path = large_pstats(setting)
    result: dict = {"fathom": [], "pstats": []}
    for _ in range(setting.rounds):
        ours = timed([setting.fathom, "report", "--sort", "cumulative", path],
                     setting.environment(), keep=True)
        theirs = timed([python, "-m", "pstats", path], setting.environment(),
                       stdin="sort cumulative\nstats 20\n", keep=True)
        result["fathom"].append(ours["wall"])
        result["pstats"].append(theirs["wall"])
        if names_in(ours["text"]) != names_in(theirs["text"]):
            raise peers.Failure("fathom report and pstats show different functions")
    return result


def names_in(text: str) -> set[str]:
    """The functions that a table shows."""
    return {word for line in text.splitlines() for word in line.replace("(", " ").replace(
        ")", " ").split() if word.startswith("function_")}


def opening(setting: Setting, sizes: list[int]) -> list[dict]:
    """Reports and conversions of large files, by Fathom alone."""
    program, rows = peers.contexts(setting.build), []
    path = large_pstats(setting)
    recording, back = setting.scratch / "large.fathom", setting.scratch / "back.prof"
    rows.append(best_of(setting, "convert pstats (50,000 functions) to .fathom", path,
                        ["convert", "--force", path, "-o", recording]))
    rows.append(best_of(setting, "convert that back to pstats", recording,
                        ["convert", "--force", recording, "-o", back]))
    for size in sizes:
        path = setting.scratch / "contexts.fathom"
        subprocess.run([str(program), str(size), str(path)], check=True)
        what = f"{size // 1_000_000}M contexts"
        rows.append(best_of(setting, f"report, {what}", path, ["report", path]))
        rows.append(best_of(setting, f"report --tree, {what}", path, ["report", "--tree", path]))
        rows.append(best_of(setting, f"convert to pstats, {what}", path,
                            ["convert", "--force", path, "-o", back]))
        path.unlink()
    return rows + merging(setting, [100, 400])


def merging(setting: Setting, counts: list[int]) -> list[dict]:
    """`fathom merge` of so many recordings of 20,000 contexts each: time and memory per number."""
    one, out = setting.scratch / "one.fathom", setting.scratch / "merged.fathom"
    subprocess.run([str(peers.contexts(setting.build)), "20000", str(one)], check=True)
    return [best_of(setting, f"merge, {count} recordings", one,
                    ["merge", *[one] * count, "-o", out, "--force"]) for count in counts]


def best_of(setting: Setting, title: str, path: Path, words: list[object]) -> dict:
    runs = [timed([setting.fathom, *words], setting.environment())
            for _ in range(min(setting.rounds, 3))]
    return {"what": title, "file_bytes": path.stat().st_size,
            "wall": min(run["wall"] for run in runs),
            "peak_bytes": min(run["peak_bytes"] for run in runs)}
