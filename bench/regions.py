"""The group regions: what `with fathom.region("name"):` costs, idle and recorded, beside what others offer for it.

Each way is a process of its own that times itself (programs/regions.py), in turn, several times; the least counts. nvtx
and ittapi have nobody who listens: that is what a program pays for them always. Recorded ways run under `fathom run`;
--no-c-calls, for with C calls `fathom.region` is itself a call that is recorded.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import peers
import tables

PROGRAM = peers.HERE / "programs" / "regions.py"
TARGETS_IDLE = {"3.11": 46, "3.12": 46, "3.13": 46}
TARGET_IDLE_LATER, TARGET_RECORDING = 50, 65

# title: (way of the program, options of fathom run or None, variables)
OURS = {
    "idle": ("region", None, {}),
    "idle, with a value": ("values", None, {}),
    "idle, made once": ("kept", None, {}),
    "idle, token": ("tokens", None, {}),
    "fathom run": ("region", ["--sample"], {}),
    "fathom run --calls": ("region", ["--calls", "--no-c-calls"], {}),
    "fathom run --trace": ("region", ["--trace", "--no-c-calls"], {}),
    "FATHOM_SUMMARY=1": ("region", None, {"FATHOM_SUMMARY": "1"}),
}
PEERS = {"contextlib.contextmanager": "contextmanager", "nvtx.annotate": "nvtx", "ittapi.task": "ittapi",
         "viztracer log_event, stopped": "viztracer", "… recording": "viztracer-recording"}
WITH_TARGET = ("fathom run", "fathom run --calls", "fathom run --trace", "FATHOM_SUMMARY=1")


def once(command: list, scratch: Path, variables: dict) -> float:
    answer = scratch / "answer.json"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FATHOM"))}
    done = subprocess.run([*map(str, command), str(answer)], env={**env, **variables}, stdin=subprocess.DEVNULL,
                          cwd=scratch, capture_output=True, text=True)
    if done.returncode:
        raise peers.Failure((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(answer.read_text())


def measured(build: Path, scratch: Path, version: str, python: str, rounds: int, say) -> dict:
    interpreter, _ = peers.environment(version, python, ("nvtx", "ittapi", "viztracer"), "venv-regions")
    result: dict = {}
    missing = set()
    for _ in range(rounds):
        for title, (way, options, variables) in OURS.items():
            command = [interpreter, PROGRAM, way]
            if options is not None:
                command = [build / "fathom", "run", "-q", *options, "-f", "-o", scratch / "regions.fathom", "--python",
                           *command]
            seconds = once(command, scratch, {**variables, "PYTHONPATH": str(build / "python")})
            result[title] = min(seconds, result.get(title, seconds))
        for title, way in PEERS.items():
            if title in missing:
                continue
            try:
                seconds = once([interpreter, PROGRAM, way], scratch, {})
                result[title] = min(seconds, result.get(title, seconds))
            except peers.Failure:
                missing.add(title)  # there is none for this Python
    say(f"regions {version}  idle {result['idle']:.0f} ns, sampled {result['fathom run']:.0f}, traced "
        f"{result['fathom run --trace']:.0f}")
    return result


def target_of(title: str, version: str) -> float | None:
    if title == "idle":
        return TARGETS_IDLE.get(version, TARGET_IDLE_LATER)
    return TARGET_RECORDING if title in WITH_TARGET else None


def cell(title: str, version: str, result: dict) -> str:
    if title not in result:
        return "–"
    target, value = target_of(title, version), result[title]
    return f"{value:.0f}" if target is None else f"{value:.0f} ({'≤' if value <= target else 'NOT ≤'} {target})"


def markdown(data: dict) -> str:
    if not data:
        return ""
    rows = [[title, *(cell(title, version, result) for version, result in data.items())] for title in (*OURS, *PEERS)]
    return ("## What a region costs\n\nNanoseconds that `with` adds to a turn of an empty loop; in brackets what was "
            "wanted.\n\n" + tables.table(["", *data], rows))
