"""What the behaviour tests share: the matrix of Pythons, and running code inside one of them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import launch
import pythons

REPO = Path(__file__).resolve().parents[2]
FATHOM = os.environ.get("FATHOM") or str(REPO / "build" / "fathom")
PACKAGE = str(Path(FATHOM).resolve().parent / "python")


def pytest_sessionstart(session):
    # Under nohup, or in the background of a script, all programs here would ignore these.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    missing = pythons.missing()
    if missing:
        pytest.exit(f"required Pythons are not here: {' '.join(missing)}", returncode=3)


@pytest.fixture(params=pythons.VERSIONS)
def python(request):
    """The path of an interpreter; the test runs once for each version of the matrix."""
    path = pythons.interpreters().get(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine (tools/pythons provide)")
    return path


@pytest.fixture(params=pythons.SAMPLED_VERSIONS, scope="module")
def any_python(request):
    """As `python`, with the older versions that are only watched from outside. Tests of a module
    come version by version, so that they can share one running program."""
    path = pythons.sampled().get(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine (pyenv, or tools/pythons provide)")
    return path


@pytest.fixture
def inside(python, tmp_path):
    """Run a piece of code in the interpreter, with the package; what it assigns to `result` comes
    back (through JSON)."""

    def call(code, **options):
        script = tmp_path / "inside.py"
        script.write_text(
            "import json, sys\nimport fathom\n" + textwrap.dedent(code)
            + "\nprint('RESULT', json.dumps(result))\n"
        )
        env = dict(os.environ, PYTHONPATH=PACKAGE, PYTHONHASHSEED="0")
        done = subprocess.run([python, str(script)], env=env, capture_output=True, text=True,
                              timeout=300, cwd=tmp_path, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.split("RESULT", 1)[1])

    return call


@pytest.fixture
def record(python, tmp_path):
    """Record a program that is written here; the file. What it printed stays at hand."""
    def call(code, *options, status=0):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}.fathom"
        done = launch.run(*(options or ("--memory",)), script, python=python, output=output,
                          collectors=(), env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert done.returncode == status, done.stderr
        call.stdout, call.stderr = done.stdout, done.stderr
        return output

    return call
