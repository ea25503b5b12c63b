"""Shells and other users' programs below `fathom run`: as without it, down to the last descriptor."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import launch
from launch import own_run_folders  # noqa: F401 (a fixture)

SHELLS = launch.program("shells.py")
LARGE = {**os.environ, **{f"VARIABLE_{i}": "x" * 20 for i in range(1500)}}
LARGE.pop("LD_PRELOAD", None)


def test_popen_is_that_of_the_c_library(python, tmp_path):
    alone = launch.plain(python, SHELLS, "observe")
    assert "no zombies left" in alone.stdout, alone.stderr
    under = launch.run(SHELLS, "observe", python=python, output=tmp_path / "o.fathom")
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)


def test_the_environment_stays_while_a_shell_starts(python, tmp_path):
    """Threads look through a large environment while others call popen."""
    done = launch.run(SHELLS, "threads", python=python, output=tmp_path / "o.fathom", env=LARGE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all went well\n", "")


def test_starting_children_takes_no_memory(tmp_path):
    """A child of vfork builds its environment in the memory of its parent, and never comes back."""
    code = ("import subprocess\n"
            "def kilobytes():\n"
            "    lines = open('/proc/self/status').read().splitlines()\n"
            "    return int(next(l for l in lines if l.startswith('VmSize')).split()[1])\n"
            "subprocess.run(['true'])\n"
            "before = kilobytes()\n"
            "for _ in range(200): subprocess.run(['true'])\n"
            "print(kilobytes() - before < 1000)\n")  # an environment is 12 kB: 2400 in all
    done = launch.run("-c", code, output=tmp_path / "o.fathom", env=LARGE)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.fixture
def private_agents(tmp_path):
    """Fathom's libraries in a folder that only root may read."""
    if os.getuid() != 0:
        pytest.skip("becoming another user needs root")
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    for library in Path(launch.preload_library()).parent.glob("*.so"):
        shutil.copy(library, folder)
    return folder


OTHER_USERS = {
    "su": "su nobody -s /bin/sh -c '{}'",
    "setpriv": "setpriv --reuid nobody --clear-groups sh -c '{}'",
    "runuser": "runuser -u nobody -- sh -c '{}'",
}


@pytest.mark.parametrize("way", sorted(OTHER_USERS))
@pytest.mark.parametrize("starter", ["shell", "python"])
def test_other_users_who_may_not_read_fathom(way, starter, tmp_path, private_agents):
    if not shutil.which(OTHER_USERS[way].split()[0]):
        pytest.skip(f"{way} is not installed")
    command = OTHER_USERS[way].format("id -un; env | grep -E ^LD_PRELOAD=\\|^FATHOM_RUN=; true")
    words = ["sh", "-c", command + "; true"] if starter == "shell" else [
        sys.executable, "-c", f"import os; os.system({command!r})"]
    env = {**os.environ, "FATHOM_AGENTS": str(private_agents)}
    env.pop("LD_PRELOAD", None)
    alone = launch.plain(*words, env=env, cwd="/")
    assert (alone.stdout, alone.stderr) == ("nobody\n", "")
    # With a Python before it, so that there is something to record.
    first = [sys.executable, "-c", "pass"]
    under = launch.run("sh", "-c", f"'{first[0]}' -c pass; exec \"$@\"", "sh", *words, env=env,
                       cwd="/", output=tmp_path / "o.fathom")
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)


def test_the_users_own_preload_stays_for_other_users(tmp_path, private_agents):
    """Only Fathom's part is taken out of LD_PRELOAD."""
    code = ("import os\n"
            "os.environ['LD_PRELOAD'] = 'libm.so.6'\n"
            "os.system('setpriv --reuid nobody --clear-groups printenv LD_PRELOAD')\n")
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    env = {**os.environ, "FATHOM_AGENTS": str(private_agents)}
    under = launch.run("-c", code, env=env, cwd="/", output=tmp_path / "o.fathom")
    assert under.stdout.splitlines() == ["libm.so.6"]
    assert under.stderr == ""
