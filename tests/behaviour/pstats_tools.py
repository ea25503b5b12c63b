"""Running the command on pstats files, and asking the interpreters' own pstats for the answers."""

from __future__ import annotations

import glob
import json
import marshal
import os
import re
import subprocess
from pathlib import Path

import pythons

REPO = Path(__file__).resolve().parents[2]
FATHOM = os.environ.get("FATHOM", str(REPO / "build" / "fathom"))

# The interpreters of the matrix, and older ones that only write profiles.
OLDER = ("3.8", "3.9", "3.10")


def interpreters() -> dict[str, str]:
    found = {}
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for version in OLDER:
        for path in sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}")):
            found[version] = path
    return {**found, **pythons.interpreters()}


INTERPRETERS = interpreters()


def fathom(*args, cwd=None, env=None) -> subprocess.CompletedProcess:
    """The command, without a terminal; output as bytes."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    return subprocess.run([FATHOM, *map(str, args)], cwd=cwd, env={**environment, **(env or {})},
                          stdin=subprocess.DEVNULL, capture_output=True)


def report(*args, cwd=None) -> str:
    done = fathom("report", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode()


def table(*args, cwd=None) -> dict:
    return json.loads(report("--json", *args, cwd=cwd))


def fails(status: int, *args, cwd=None) -> str:
    """Runs the command, which must fail with `status` and one sentence; gives the sentence."""
    done = fathom(*args, cwd=cwd)
    text = done.stderr.decode()
    assert done.returncode == status, (done.returncode, text)
    assert done.stdout == b""
    assert text.startswith("fathom") and text.endswith("\n") and text.count("\n") == 1, text
    return text


def python(version: str, code: str, *args, cwd=None) -> str:
    done = subprocess.run([INTERPRETERS[version], "-c", code, *map(str, args)], cwd=cwd,
                          capture_output=True, check=False,
                          env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


# Prints a JSON list with one text per job: {files, strip, sort, reverse, kind, amount}.
ANSWERS = """
import io, json, pstats, sys
answers = []
for job in json.loads(sys.argv[1]):
    out = io.StringIO()
    stats = pstats.Stats(*job["files"], stream=out)
    if job["strip"]:
        stats.strip_dirs()
    if job["sort"]:
        stats.sort_stats(*job["sort"])
    if job["reverse"]:
        stats.reverse_order()
    getattr(stats, "print_" + job["kind"])(*job["amount"])
    answers.append(out.getvalue())
json.dump(answers, sys.stdout)
"""


def job(files, kind="stats", sort=(), amount=(), strip=False, reverse=False) -> dict:
    return {"files": [str(f) for f in files], "kind": kind, "sort": list(sort),
            "amount": list(amount), "strip": strip, "reverse": reverse}


def answers(version: str, jobs: list[dict], cwd=None) -> list[str]:
    return json.loads(python(version, ANSWERS, json.dumps(jobs), cwd=cwd))


def our_answer(job: dict, cwd=None) -> str:
    args = ["--pstats"]
    if job["kind"] != "stats":
        args.append("--" + job["kind"])
    if job["strip"]:
        args.append("--strip-dirs")
    for key in job["sort"]:
        args += ["--sort", key]
    if job["reverse"]:
        args.append("--reverse")
    for amount in job["amount"]:
        args += ["-r", str(amount)]
    return report(*args, *job["files"], cwd=cwd)


def write(path: Path, stats: dict, version: int = 4) -> Path:
    path.write_bytes(marshal.dumps(stats, version))
    return path


def read(path: Path) -> dict:
    return marshal.loads(Path(path).read_bytes())


def same_numbers(ours: dict, theirs: dict) -> None:
    """Equal counts, times to the nanosecond."""
    assert ours.keys() == theirs.keys()
    for key, (cc, nc, tt, ct, callers) in theirs.items():
        value = ours[key]
        assert value[:2] == (cc, nc), key
        assert abs(value[2] - tt) <= 1e-9 and abs(value[3] - ct) <= 1e-9, key
        assert value[4].keys() == callers.keys(), key
        for caller, numbers in callers.items():
            own = value[4][caller]
            if isinstance(numbers, tuple):
                assert own[:2] == numbers[:2], (key, caller)
                assert abs(own[2] - numbers[2]) <= 1e-9, (key, caller)
                assert abs(own[3] - numbers[3]) <= 1e-9, (key, caller)
            else:
                assert own == numbers, (key, caller)


def uncolored(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
