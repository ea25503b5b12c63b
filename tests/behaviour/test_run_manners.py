"""A program under `fathom run` is exactly what it is without: compared field by field."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zipfile

import pytest

import launch
import pythons
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.interpreters()
MANNERS = launch.program("manners.py")
# What Fathom itself needs of the environment.
OWN = {name: os.environ[name] for name in ("PATH", "FATHOM_AGENTS") if name in os.environ}


@pytest.fixture(params=sorted(INTERPRETERS) or [pytest.param(
    None, marks=pytest.mark.skip(reason="no interpreter of the matrix is here"))])
def python(request):
    return INTERPRETERS[request.param]


def compare(python, words, tmp_path, **options):
    """Run both ways; returns what differs. The program gets the same words either way."""
    alone = launch.plain(python, *words, **options)
    under = launch.run(*words, python=python, output=tmp_path / "out.fathom", **options)
    assert alone.returncode == 0, alone.stderr
    assert (under.returncode, under.stderr) == (0, alone.stderr)
    before, after = json.loads(alone.stdout), json.loads(under.stdout)
    assert before.keys() == after.keys()
    return {key: (before[key], after[key]) for key in before if before[key] != after[key]}


def test_script(python, tmp_path):
    assert compare(python, [MANNERS, "a", "--", "-b"], tmp_path) == {}


def test_module(python, tmp_path):
    assert compare(python, ["-m", "manners", "x"], tmp_path, cwd=launch.PROGRAMS) == {}


def test_code(python, tmp_path):
    code = "import sys; sys.path.insert(0, '.'); import manners; manners.main()"
    assert compare(python, ["-c", code, "x", "-m"], tmp_path, cwd=launch.PROGRAMS) == {}


def test_numbers_beside_code(python, tmp_path):
    """The agent keeps some there, too: the program's own are freed, and nothing else by its function."""
    program = launch.program("code_extra.py")
    assert compare(python, [program], tmp_path) == {}
    done = launch.plain(python, program)
    assert sorted(filter(None, json.loads(done.stdout)["freed"])) == list(range(1000, 1006))


def test_stdin(python, tmp_path):
    with open(MANNERS, encoding="utf-8") as file:
        text = file.read()
    assert compare(python, ["-", "x"], tmp_path, input=text) == {}


def test_folder(python, tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "__main__.py").write_text(open(MANNERS, encoding="utf-8").read())
    assert compare(python, [str(folder), "x"], tmp_path) == {}


def test_zip(python, tmp_path):
    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(MANNERS, "__main__.py")
    assert compare(python, [str(archive), "x"], tmp_path) == {}


def test_relative_script_in_other_folder(python, tmp_path):
    words = [os.path.relpath(MANNERS, tmp_path), "x"]
    assert compare(python, words, tmp_path, cwd=tmp_path) == {}


def test_environment_is_kept_in_order(python, tmp_path):
    env = {"Z": "1", **OWN, "A": "", "HOME": "/", "ODD": "a=b=c"}
    assert compare(python, [MANNERS], tmp_path, env=env) == {}


@pytest.mark.parametrize("name, value", [
    ("PYTHONMALLOC", "debug"), ("PYTHONMALLOC", "malloc_debug"), ("PYTHONMALLOC", "malloc"),
    ("PYTHONDEVMODE", "1")])
def test_other_allocators(python, tmp_path, name, value):
    """A block from one allocator given back to another, a checking one, would end the process."""
    assert compare(python, [MANNERS], tmp_path, env={**OWN, name: value}) == {}


@pytest.mark.parametrize("value", ["libc.so.6", "libc.so.6:libm.so.6", "libc.so.6 libm.so.6", ""])
def test_users_own_preload_is_kept(python, tmp_path, value):
    env = {**OWN, "LD_PRELOAD": value, "AFTER": "1"}
    assert compare(python, [MANNERS], tmp_path, env=env) == {}


def test_ignored_and_blocked_signals_are_inherited(python, tmp_path):
    def before_exec():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    assert compare(python, [MANNERS], tmp_path, preexec_fn=before_exec) == {}


def test_exit_status_when_sigchld_is_ignored(tmp_path):
    done = launch.run("-c", "import sys; sys.exit(5)", output=tmp_path / "o.fathom",
                      preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 5


def test_closed_standard_streams(python, tmp_path):
    """With descriptors 0 to 2 closed, none of ours may take their place."""
    code = ("import os\n"
            "found = [fd for fd in (0, 1, 2) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
            "open(os.environ['SEEN'], 'w').write(repr(found))\n")
    seen = []
    for prefix in ([python], [launch.FATHOM, "run", "--calls", "-q", "--python", python, "-o",
                              str(tmp_path / "o.fathom")]):
        path = tmp_path / f"seen{len(seen)}"
        subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *prefix, "-c", code],
                       env={**os.environ, "SEEN": str(path)}, timeout=launch.TIMEOUT, check=True)
        seen.append(path.read_text())
    assert seen[0] == seen[1]


def test_inherited_descriptors_are_passed_on(python, tmp_path):
    read_end, write_end = os.pipe()
    try:
        assert compare(python, [MANNERS], tmp_path, pass_fds=[read_end, write_end]) == {}
    finally:
        os.close(read_end)
        os.close(write_end)


def test_own_process_group_and_session(python, tmp_path):
    """It stays in the launcher's group and session, of which the launcher is the leader."""
    differs = compare(python, [MANNERS], tmp_path, start_new_session=True)
    assert differs == {"group_is_parents": (False, True), "session_is_parents": (False, True)}


def test_stdin_reaches_the_program_untouched(tmp_path):
    text = "".join(f"line {n}\n" for n in range(20000))
    code = "import sys; sys.stdout.write(sys.stdin.read())"
    done = launch.run("-c", code, output=tmp_path / "o.fathom", input=text)
    assert done.stdout == text


def test_subinterpreter_sees_the_plain_environment(tmp_path):
    if "3.14" not in INTERPRETERS:
        pytest.skip("needs 3.14 for concurrent.interpreters")
    code = ("from concurrent import interpreters\n"
            "interpreters.create().exec('import os; print(sorted(os.environ))')\n")
    python = INTERPRETERS["3.14"]
    alone = launch.plain(python, "-c", code)
    under = launch.run("-c", code, python=python, output=tmp_path / "o.fathom")
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)


def test_other_programs_work_as_before(tmp_path):
    for number, command in enumerate((
            ["sh", "-c", "echo one; echo two >&2; exit 3"],
            ["env", "true"], ["ls", "/"], ["sh", "-c", "ulimit -a"])):
        alone = launch.plain(*command)
        under = launch.run(*command, output=tmp_path / f"{number}.fathom")
        assert (under.stdout, under.returncode) == (alone.stdout, alone.returncode)
        said = under.stderr.removeprefix(alone.stderr)
        assert said.startswith("fathom run: no Python was profiled: none ran, ") and said.count("\n") == 1
