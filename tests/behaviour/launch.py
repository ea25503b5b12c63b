"""Running programs plain and under `fathom run`, for the tests of the launcher."""

from __future__ import annotations

import os
import re
import resource
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
FATHOM = os.environ.get("FATHOM") or str(REPO / "build" / "fathom")
PROGRAMS = REPO / "tests" / "programs"
TIMEOUT = 300  # for who hangs; no test is judged by its speed
COMPILER = shlex.split(os.environ.get("CC", "cc"))  # several words, as with "ccache gcc"


def program(name: str) -> str:
    return str(PROGRAMS / name)


def plain(*command: str, **options) -> subprocess.CompletedProcess:
    """Run a command as it is; stdout and stderr as text."""
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        del options["stdin"]
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False,
                          **options)


def fathom(*words: str, **options) -> subprocess.CompletedProcess:
    return plain(FATHOM, *words, **options)


def run(*words: str, python: str = sys.executable, output: str | Path | None = None,
        quiet: bool = True, collectors: tuple[str, ...] | None = None,
        **options) -> subprocess.CompletedProcess:
    """fathom run, with that interpreter for scripts; quiet, so that stderr is the program's. Calls
    are recorded unless something else is asked for."""
    if collectors is None:
        asked = any(str(word).startswith(("--lines", "--sample")) for word in words)
        collectors = () if asked else ("--calls",)
    front = ["run", *collectors, "--python", python]
    if quiet:
        front.append("--quiet")
    if output:
        front += ["-o", str(output)]
    return fathom(*front, *words, **options)


def said(done: subprocess.CompletedProcess) -> str:
    """What stands on stderr, but for the word on helpers of multiprocessing that end after the program: on a busy machine
    the launcher does not wait for that."""
    return re.sub(r"fathom run: \d process(es are| is) still running; when .* reads the whole\n", "", done.stderr)


def start(*command: str, **options) -> subprocess.Popen:
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def outlived(launcher: subprocess.Popen, words: str | None = None) -> str:
    """Kills the launcher alone, and gives its program words. What it says from then on. Its output ends a moment before the
    program does, which has more files to close."""
    programs = [os.pidfd_open(int(pid)) for children in Path(f"/proc/{launcher.pid}/task").glob("*/children")
                for pid in children.read_text().split()]
    assert programs
    launcher.kill()
    said, _ = launcher.communicate(words, timeout=TIMEOUT)
    for program in programs:
        assert select.select([program], [], [], TIMEOUT)[0], "it ends"
        os.close(program)
    return said


# Sends the command a signal as soon as it calls a function of the C library that it calls early on.
EARLY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void send(void)
{
    static int sent;
    if (!sent++ && strcmp(program_invocation_short_name, "fathom") == 0)
        kill(getpid(), SIGNAL);
}
#define PASS(name, ret, params, args) \\
    ret name params { send(); return ((ret (*) params)dlsym(RTLD_NEXT, #name)) args; }
PASS(strtol, long, (const char *s, char **e, int b), (s, e, b))
PASS(__isoc23_strtol, long, (const char *s, char **e, int b), (s, e, b))
PASS(mkdtemp, char *, (char *t), (t))
"""


def signalled_early(name: str, tmp_path: Path) -> dict[str, str]:
    """The environment in which the command gets that signal before it has done anything."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "early.c", tmp_path / "early.so"
    source.write_text(EARLY.replace("SIGNAL", name))
    subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", library, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


@pytest.fixture(autouse=True)
def own_run_folders(tmp_path_factory, monkeypatch):
    """The folders of this test's runs lie apart from everybody else's."""
    monkeypatch.setenv("FATHOM_TMPDIR", str(tmp_path_factory.mktemp("runs")))


@pytest.fixture(autouse=True)
def no_core_files():
    """For tests whose programs crash on purpose; used where it is imported."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def run_folders() -> list[str]:
    """The folders of this test's runs that exist just now."""
    return sorted(str(path) for path in Path(os.environ["FATHOM_TMPDIR"]).iterdir())


def preload_library() -> str:
    """Where the command finds its preload library when it is not told where."""
    folder = os.environ.get("FATHOM_AGENTS")
    candidates = [Path(folder)] if folder else [
        Path(FATHOM).resolve().parent / "python" / "fathom",
        *Path(FATHOM).resolve().parent.parent.glob("lib/python3*/*-packages/fathom")]
    return str(next(path for path in (candidate / "libfathom_preload.so"
                                      for candidate in candidates) if path.is_file()))
