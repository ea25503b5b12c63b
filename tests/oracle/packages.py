"""Virtual environments with packages from the package index, one per Python, made once.

They lie in ${XDG_CACHE_HOME:-~/.cache}/fathom/bench/real-VERSION. A package is installed when a program
first needs it; what cannot be had for a Python is a Failed with the installer's own last word, for
the caller to skip with, and is not tried again before a day is over.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import profilers

RETRY_SECONDS = 24 * 3600


def run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise profilers.Failed(lines[-1].strip() if lines else f"status {done.returncode}")


def environment(version: str, python: str) -> Path:
    """Its folder; made anew when the interpreter is another one than it was made of."""
    folder = profilers.cache_folder() / f"real-{version}"
    stamp = folder / "base"
    if not stamp.exists() or stamp.read_text() != python:
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        stamp.write_text(python)
    return folder


def installed(interpreter: Path, package: str) -> bool:
    name = re.split(r"[=<>~! \[]", package)[0]
    code = f"import importlib.metadata as m; m.version({name!r})"
    return subprocess.run([str(interpreter), "-c", code], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def provide(version: str, python: str, wanted: list[str]) -> str:
    """An interpreter of that version that has the packages: itself, if none is wanted."""
    if not wanted:
        return python
    folder = environment(version, python)
    interpreter = folder / "bin" / "python"
    for package in wanted:
        if not installed(interpreter, package):
            install(folder, interpreter, package)
    return str(interpreter)


def install(folder: Path, interpreter: Path, package: str) -> None:
    """A failure is kept beside the environment, as it takes minutes to fail again."""
    refused = folder / f"without-{re.sub(r'[^A-Za-z0-9]', '_', package)}"
    if refused.exists() and time.time() - refused.stat().st_mtime < RETRY_SECONDS:
        raise profilers.Failed(refused.read_text())
    try:
        run(interpreter, "-m", "pip", "install", "--quiet", "--prefer-binary", package)
    except profilers.Failed as failure:
        refused.write_text(f"{package} cannot be installed: {failure}")
        raise profilers.Failed(refused.read_text()) from None
