"""What the benchmark needs besides the build, made once in a cache folder.

Owns ${XDG_CACHE_HOME:-~/.cache}/fathom/bench: a virtual environment per Python with yappi,
line_profiler and pprofile, the programs of pyperformance, the other viewers (speedscope, snakeviz),
and the two helpers in C (floor.c, contexts.c).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


class Failure(Exception):
    """One sentence for the user."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "fathom" / "bench"


def pythons(versions: list[str] | None) -> dict[str, str]:
    """{"3.13": path} of the wanted versions, or of all that are here."""
    listing = subprocess.run([sys.executable, str(ROOT / "tools" / "pythons"), "list"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    found = dict(line.split(" ", 1) for line in listing.splitlines())
    if not versions:
        return found
    missing = [version for version in versions if version not in found]
    if missing:
        raise Failure(f"no Python {', '.join(missing)} here; see tools/pythons list")
    return {version: found[version] for version in versions}


def run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise Failure(f"{' '.join(str(word) for word in words[:6])} …: {last}")


PEERS = ("yappi", "line_profiler", "pprofile")


def environment(version: str, python: str, wanted: tuple[str, ...] = PEERS,
                name: str = "venv") -> tuple[str, set[str]]:
    """The interpreter of a virtual environment for that Python, and the peers that are in it."""
    folder = cache_folder() / f"{name}-{version}"
    interpreter = folder / "bin" / "python"
    stamp = folder / "base"
    if not stamp.exists() or stamp.read_text() != python:
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        stamp.write_text(python)
    present = set()
    for peer in wanted:
        try:
            if not module_version(interpreter, peer):
                run(interpreter, "-m", "pip", "install", "--quiet", peer)
            present.add(peer)
        except Failure as failure:
            print(f"bench: without {peer} on {version}: {failure}", file=sys.stderr)
    return str(interpreter), present


def full_version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], text=True, stdout=subprocess.PIPE).stdout.strip()


def module_version(interpreter: object, name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([str(interpreter), "-c", code], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()


def pyperformance(interpreter: str) -> tuple[Path, str]:
    """The folder of pyperformance's benchmark programs, and its version."""
    folder = cache_folder() / "pyperformance"
    programs = folder / "pyperformance" / "data-files" / "benchmarks"
    if not programs.is_dir():
        # Its dependency pyperf is not needed: suite.py stands in for it.
        run(interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder,
            "pyperformance")
    version = next(folder.glob("pyperformance-*.dist-info")).name.split("-")[1]
    return programs, version.removesuffix(".dist")


def speedscope() -> Path:
    """The folder of speedscope's page."""
    folder = cache_folder() / "speedscope"
    release = folder / "node_modules" / "speedscope" / "dist" / "release"
    if not (release / "index.html").exists():
        if not shutil.which("npm"):
            raise Failure("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder,
            "speedscope")
    return release


def speedscope_version() -> str:
    package = cache_folder() / "speedscope" / "node_modules" / "speedscope" / "package.json"
    return json.loads(package.read_text())["version"] if package.exists() else ""


def snakeviz() -> Path:
    folder = cache_folder() / "venv-snakeviz"
    program = folder / "bin" / "snakeviz"
    if not program.exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "snakeviz")
    return program


def snakeviz_version() -> str:
    python = cache_folder() / "venv-snakeviz" / "bin" / "python"
    return module_version(python, "snakeviz") if python.exists() else ""


def compile_c(target: Path, source: Path, *words: object) -> None:
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        run(os.environ.get("CC", "cc"), "-O2", source, *words, "-o", target)


def floor(version: str) -> Path:
    """The folder with the module fathom_floor for that Python."""
    folder = cache_folder() / f"floor-{version}"
    listing = subprocess.run([sys.executable, str(ROOT / "tools" / "pythons"), "include", version],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    compile_c(folder / "fathom_floor.so", HERE / "floor.c", "-shared", "-fPIC",
              *[f"-I{line}" for line in listing.splitlines()])
    return folder


def contexts(build: Path) -> Path:
    """The program that writes large recordings."""
    program = cache_folder() / "contexts"
    library = build / "libfathom-core.a"
    if program.exists() and program.stat().st_mtime < library.stat().st_mtime:
        program.unlink()
    compile_c(program, HERE / "contexts.c", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}", library,
              "-lzstd", "-lpcre2-8", "-lpthread", "-lm")
    return program
