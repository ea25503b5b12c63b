"""A server that embeds Python and makes its workers by a plain fork(), as uwsgi does: nobody tells Python."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SOURCE = r"""
#include <Python.h>
#include <sys/wait.h>
int main(int argc, char **argv)
{
    Py_Initialize();
    PyRun_SimpleString("import sys, time\n");
    pid_t pid = fork(); /* without PyOS_BeforeFork() and PyOS_AfterFork_Child() */
    if (pid == 0)
        return PyRun_SimpleString(argv[1]);
    printf("%d\n", (int)pid);
    fflush(stdout);
    return waitpid(pid, NULL, 0) < 0;
}
"""


def settings(python: str, *names: str) -> list[str]:
    """Variables of the interpreter's build."""
    code = f"import sysconfig; print(*(sysconfig.get_config_var(n) or '' for n in {names!r}), sep='\\n')"
    return subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split("\n")[:len(names)]


def build(python: str, folder: Path, code: str = SOURCE) -> str:
    """The server, or another program, for that Python; skips where it cannot be linked."""
    include, version, libdir, libs, syslibs, link = settings(
        python, "INCLUDEPY", "LDVERSION", "LIBDIR", "LIBS", "SYSLIBS", "LINKFORSHARED")
    if not shutil.which("cc") or not Path(include, "Python.h").exists():
        pytest.skip("there is no C compiler, or no Python.h of this Python")
    if not list(Path(libdir).glob(f"libpython{version}.*")):
        pytest.skip("this Python comes without a library to embed")
    source, server = folder / "server.c", folder / "server"
    source.write_text(code)
    done = subprocess.run(
        ["cc", "-w", f"-I{include}", source, "-o", server, f"-L{libdir}", f"-Wl,-rpath,{libdir}",
         f"-lpython{version}", *shlex.split(f"{link} {libs} {syslibs} -lm")], stderr=subprocess.PIPE)
    if done.returncode:
        pytest.skip("the library of this Python does not go with this system's compiler")
    return str(server)


@contextlib.contextmanager
def worker(python: str, code: str, folder: Path):
    """The process id of a worker that runs the code."""
    home = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    server = subprocess.Popen([build(python, folder), code], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONHOME": home})
    pid = int(server.stdout.readline())
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        server.stdout.close()
        server.wait()
