"""What `fathom run CMD` runs, and that every Python below it is profiled."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

import launch
import pythons
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.interpreters()
NEWEST = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
OLDEST = list(INTERPRETERS.values())[0] if INTERPRETERS else sys.executable
PROFILED = launch.program("profiled.py")
CHILDREN = launch.program("starts_children.py")
WAYS = ("subprocess subprocess_empty_env subprocess_shell subprocess_close_fds_false"
        " subprocess_preexec large_env system popen c_popen execv execve execvp execvpe execle"
        " fexecve posix_spawn posix_spawnp spawnv env_i fork spawn_pool forkserver_pool").split()

pytestmark = pytest.mark.skipif(not INTERPRETERS, reason="no interpreter of the matrix is here")


@pytest.fixture(params=sorted(INTERPRETERS))
def python(request):
    return INTERPRETERS[request.param]


@pytest.mark.parametrize("way", WAYS)
def test_children_are_profiled(python, way, tmp_path):
    done = launch.run(CHILDREN, way, python=python, output=tmp_path / "o.fathom")
    said = launch.said(done) if way.endswith("_pool") else done.stderr
    assert (done.returncode, done.stdout, said) == (0, "profiled child\n", "")


def test_child_with_its_own_preload(python, tmp_path):
    done = launch.run(CHILDREN, "user_preload_kept", python=python, output=tmp_path / "o.fathom")
    assert (done.stdout, done.stderr) == ("profiled libc.so.6\n", "")


@pytest.mark.parametrize("way", ["system", "subprocess", "popen"])
def test_child_failure_is_seen(way, tmp_path):
    code = {"system": "import os; print(os.system('exit 3'))",
            "subprocess": "import subprocess; print(subprocess.call('exit 3', shell=True))",
            "popen": "import os; print(os.popen('exit 3').close())"}[way]
    alone = launch.plain(sys.executable, "-c", code)
    under = launch.run("-c", code, output=tmp_path / "o.fathom")
    assert (under.stdout, under.returncode) == (alone.stdout, alone.returncode)


def test_system_treats_signals_as_before(tmp_path):
    """The shell sees default SIGINT and SIGQUIT and the caller's mask, and ours come back."""
    code = ("import os, signal\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
            "before = signal.getsignal(signal.SIGINT)\n"
            "os.system('grep ^Sig[BIC] /proc/self/status')\n"
            "print(signal.getsignal(signal.SIGINT) is before,"
            " signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
            "print(os.system('kill -TERM $$'), os.system('/no/such/program 2>/dev/null'))\n")
    alone = launch.plain(sys.executable, "-u", "-c", code)
    under = launch.run(sys.executable, "-u", "-c", code, output=tmp_path / "o.fathom")
    assert under.stdout == alone.stdout


def test_shell_command(python, tmp_path):
    done = launch.run("sh", "-c", f"'{python}' '{PROFILED}' one; '{python}' '{PROFILED}' two",
                      output=tmp_path / "o.fathom")
    assert done.stdout == "profiled one\nprofiled two\n"


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_command(python, tmp_path):
    (tmp_path / "Makefile").write_text(f"all:\n\t@'{python}' '{PROFILED}' made\n")
    done = launch.run("make", "-s", "all", output=tmp_path / "o.fathom", cwd=tmp_path)
    assert done.stdout == "profiled made\n"


def test_interpreter_as_the_command(python, tmp_path):
    done = launch.run(python, "-X", "utf8", PROFILED, "x", output=tmp_path / "o.fathom")
    assert done.stdout == "profiled x\n"


def test_script_with_interpreter_line(python, tmp_path):
    script = tmp_path / "tool"
    script.write_text(f"#!{python}\n" + open(PROFILED, encoding="utf-8").read())
    script.chmod(0o755)
    done = launch.run(str(script), "x", output=tmp_path / "o.fathom")
    assert done.stdout == "profiled x\n"


SHOWS = "import sys\nprint(sys.version_info[:2], sys.flags.dev_mode, sys.argv, __file__)\n"


def own_interpreter(tmp_path, first_line, mode=0o755, name="tool.py"):
    """A script, and a PATH on which python3 is another Python than the newest."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.symlink(OLDEST, folder / "python3")
    (tmp_path / name).write_text(first_line + SHOWS)
    (tmp_path / name).chmod(mode)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def shows(python, *words, cwd, env=None):
    done = launch.plain(python, *words, cwd=cwd, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(tmp_path, *words, env, status=0):
    done = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", *words, cwd=tmp_path, env=env)
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.mark.parametrize("first_line", [
    f"#!{NEWEST}\n", f"#! {NEWEST} -Xdev \n", f"#!/usr/bin/env {NEWEST}\n",
    f"#!/usr/bin/env -S {NEWEST} -X dev\n"], ids=["path", "argument", "env", "split"])
def test_executable_script_names_its_interpreter(first_line, tmp_path):
    env = own_interpreter(tmp_path, first_line)
    alone = shows("./tool.py", "x", cwd=tmp_path, env=env)
    assert shown(tmp_path, "./tool.py", "x", env=env) == alone
    (tmp_path / "o.fathom").unlink()
    # Without a slash a shell would not find it: the same, but for the name.
    assert shown(tmp_path, "tool.py", "x", env=env) == alone.replace("./tool.py", "tool.py").replace(
        "/./", "/")
    (tmp_path / "o.fathom").unlink()
    assert shown(tmp_path, "--python", OLDEST, "./tool.py", env=env) == shows(
        OLDEST, "./tool.py", cwd=tmp_path)


def test_script_that_is_not_executable_is_run_by_python3(tmp_path):
    env = own_interpreter(tmp_path, f"#!{NEWEST}\n", mode=0o644)
    assert shown(tmp_path, "./tool.py", env=env) == shows(OLDEST, "./tool.py", cwd=tmp_path)


def test_executable_script_without_interpreter_is_run_by_python3(tmp_path):
    env = own_interpreter(tmp_path, "")
    assert shown(tmp_path, "./tool.py", env=env) == shows(OLDEST, "./tool.py", cwd=tmp_path)


def test_executable_script_of_something_else(tmp_path):
    """./tool.py is executed; tool.py means Python."""
    env = own_interpreter(tmp_path, "#!/bin/echo ran\n")
    assert shown(tmp_path, "./tool.py", "x", env=env) == "ran ./tool.py x\n"
    (tmp_path / "o.fathom").unlink()
    assert shown(tmp_path, "tool.py", env=env) == shows(OLDEST, "tool.py", cwd=tmp_path)


def test_executable_script_whose_interpreter_is_not_there(tmp_path):
    env = own_interpreter(tmp_path, "#! /no/such/python3 -I\n")
    for word in ("./tool.py", "tool.py"):
        done = launch.fathom("run", "-q", "-o", tmp_path / "o.fathom", word, cwd=tmp_path, env=env)
        assert (done.returncode, done.stdout) == (127, "")
        assert done.stderr == f"fathom run: {word}: its interpreter /no/such/python3 is missing\n"


def test_executable_archive(tmp_path):
    """As `python -m zipapp -p` makes it."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(SHOWS)
    subprocess.run([sys.executable, "-m", "zipapp", "app", "-p", NEWEST], cwd=tmp_path, check=True)
    env = own_interpreter(tmp_path, "", name="other.py")
    alone = shows("./app.pyz", cwd=tmp_path, env=env)
    assert shown(tmp_path, "./app.pyz", env=env) == alone


def test_default_interpreter_is_python3_on_path(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    os.symlink(NEWEST, folder / "python3")
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    code = "import sys; print(sys.version_info[:2])"
    done = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", "-c", code, env=env)
    assert done.stdout == launch.plain(NEWEST, "-c", code).stdout


def test_file_that_is_not_executable_is_a_script(tmp_path):
    script = tmp_path / "tool"
    script.write_text(open(PROFILED, encoding="utf-8").read())
    done = launch.run(str(script), python=NEWEST, output=tmp_path / "o.fathom")
    assert done.stdout == "profiled\n"


def test_options_end_at_the_command(tmp_path):
    done = launch.run(PROFILED, "-q", "--calls", "-o", "x", "--", "--unknown", python=NEWEST,
                      output=tmp_path / "o.fathom")
    assert done.stdout == "profiled -q --calls -o x -- --unknown\n"


def test_run_inside_a_run(tmp_path):
    inner = [launch.FATHOM, "run", "--calls", "-q", "-o", str(tmp_path / "inner.fathom"), "--python", NEWEST,
             PROFILED, "x"]
    done = launch.run(*inner, output=tmp_path / "outer.fathom")
    assert done.stdout == "profiled x\n"
    assert (tmp_path / "inner.fathom").exists() and (tmp_path / "outer.fathom").exists()


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10"])
def test_interpreter_without_agent_is_named(version, tmp_path):
    """It runs as it is, its children are followed, and the run says what was not profiled."""
    root = os.path.expanduser(os.environ.get("PYENV_ROOT") or "~/.pyenv")
    found = [f"{root}/versions/{name}/bin/python{version}"
             for name in sorted(os.listdir(f"{root}/versions"))
             if name.startswith(version + ".")] if os.path.isdir(f"{root}/versions") else []
    if not found:
        pytest.skip(f"no CPython {version} here")
    code = ("import os, subprocess, sys\n"
            "print('LD_PRELOAD' in os.environ, 'FATHOM_RUN' in os.environ)\n"
            "sys.stdout.flush()\n"
            "subprocess.call(sys.argv[1:], env={})\n")
    for number, quiet in enumerate((True, False)):
        done = launch.run(found[0], "-c", code, NEWEST, PROFILED, "child", quiet=quiet,
                          output=tmp_path / f"{number}.fathom")
        assert (done.stdout, done.returncode) == ("False False\nprofiled child\n", 0)
        assert f"there is no agent for CPython {version}" in done.stderr
        sampled = "; `fathom run` without --calls, --trace and --lines samples it" in done.stderr
        assert sampled == (version in ("3.9", "3.10"))


def test_nothing_but_an_interpreter_without_agent(tmp_path):
    agents = tmp_path / "agents"
    agents.mkdir()
    shutil.copy(launch.preload_library(), agents)
    done = launch.run("-c", "print('ran')", python=NEWEST, output=tmp_path / "o.fathom",
                      env={**os.environ, "FATHOM_AGENTS": str(agents)})
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    exe = os.path.realpath(NEWEST)
    assert re.fullmatch(r"fathom run: process \d+ was not profiled: there is no agent for CPython"
                        rf" 3\.\d+; `{exe} -m pip install \.` in Fathom's source builds one \({exe}\)\n"
                        r"fathom run: no Python was profiled in this run\n", done.stderr)


def test_agent_that_cannot_be_loaded(tmp_path):
    agents = tmp_path / "agents"
    agents.mkdir()
    shutil.copy(launch.preload_library(), agents)
    abi = launch.plain(NEWEST, "-c", "import sysconfig; print(sysconfig.get_config_var('SOABI'))")
    (agents / f"_agent.{abi.stdout.strip()}.so").write_text("not a library")
    done = launch.run("-c", "print('ran')", python=NEWEST, output=tmp_path / "o.fathom",
                      env={**os.environ, "FATHOM_AGENTS": str(agents)})
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert "the agent cannot be loaded" in done.stderr


def test_fathom_in_a_folder_with_spaces_and_colons(tmp_path):
    """LD_PRELOAD cannot name such a path; the run goes on all the same."""
    agents = tmp_path / "a folder: here"
    shutil.copytree(os.path.dirname(launch.preload_library()), agents)
    done = launch.run(CHILDREN, "subprocess_empty_env", python=NEWEST,
                      output=tmp_path / "o.fathom",
                      env={**os.environ, "FATHOM_AGENTS": str(agents)})
    assert (done.stdout, done.stderr) == ("profiled child\n", "")


# ---------------------------------------------------------------- what cannot be run

def refused(tmp_path, *words, **options):
    before = set(os.listdir(tmp_path))
    done = launch.run(*words, cwd=tmp_path, **options)
    assert set(os.listdir(tmp_path)) == before, "a refused run leaves nothing"
    assert launch.run_folders() == []
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("fathom run: ")
    return done.returncode, done.stderr


def test_missing_script(tmp_path):
    assert refused(tmp_path, "nosuch.py") == (127, "fathom run: there is no file nosuch.py\n")


def test_missing_command(tmp_path):
    status, sentence = refused(tmp_path, "nosuchcommand", "x")
    assert status == 127 and "nosuchcommand is neither a file nor a command" in sentence


def test_missing_interpreter(tmp_path):
    status, sentence = refused(tmp_path, "-c", "pass", python="/no/such/python")
    assert status == 127 and "/no/such/python" in sentence


def test_folder_without_main(tmp_path):
    (tmp_path / "folder").mkdir()
    status, sentence = refused(tmp_path, "./folder")
    assert status == 126 and "without __main__.py" in sentence


def test_program_that_cannot_be_executed(tmp_path):
    path = tmp_path / "program"
    path.write_text(f"#!{PROFILED}\n")  # an interpreter without permission to be one
    path.chmod(0o755)
    status, sentence = refused(tmp_path, "./program")
    assert status == 126 and "./program cannot be executed" in sentence


def test_missing_interpreter_of_a_script(tmp_path):
    for name, interpreter in (("tool", "/no/such/interpreter"), ("outer", tmp_path / "tool")):
        (tmp_path / name).write_text(f"#!{interpreter}\n")
        (tmp_path / name).chmod(0o755)
        status, sentence = refused(tmp_path, f"./{name}")
        assert status == 127 and f"./{name}: its interpreter /no/such/interpreter is missing" in sentence
    # On PATH, and with the line end of another system.
    (tmp_path / "tool").write_bytes(b"#!/bin/sh\r\n")
    status, sentence = refused(tmp_path, "tool", env={**os.environ, "PATH": str(tmp_path)})
    assert status == 127 and "tool: its interpreter /bin/sh\\r is missing" in sentence


@pytest.mark.parametrize("words, part", [
    ([], "nothing to run"),
    (["-o"], "-o needs a name"),
    (["--nosuch", "x.py"], "unknown option --nosuch"),
    (["--waits", "x.py"], "--waits is not in this version"),
    (["--memory=much", "x.py"], "--memory= is all, malloc, events or sampled[:SIZE], not much"),
    (["--trace", "--lines", "x.py"], "--trace and --lines cannot be had at once"),
    (["--trace", "--on-full", "wait", "x.py"], "--on-full is block or drop"),
    (["--trace", "--max-depth", "0", "x.py"], "--max-depth needs a whole number from 1"),
    (["--trace", "--min-duration", "10", "x.py"], "--min-duration needs a time with its unit"),
    (["--trace", "--include=", "x.py"], "--include needs a pattern"),
    (["--min-duration", "10us", "x.py"], "--min-duration goes with --trace"),
    (["--on-full", "drop", "x.py"], "--on-full goes with --trace"),
    (["-m"], "-m needs a module"),
    (["-c"], "-c needs code"),
    (["-o", "%z.fathom", "-c", "pass"], "%z is unknown"),
])
def test_wrong_usage(words, part, tmp_path):
    status, sentence = refused(tmp_path, *words)
    assert status == 2 and part in sentence


def test_missing_parts_of_fathom(tmp_path):
    status, sentence = refused(tmp_path, "-c", "pass",
                               env={**os.environ, "FATHOM_AGENTS": str(tmp_path)})
    assert status == 125 and "libfathom_preload.so" in sentence
