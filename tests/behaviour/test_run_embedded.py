"""Calls of Pythons inside other programs, however these run their code; and what is said where no agent
can be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import embedded
import launch
import pythons
import recordings
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.interpreters()

# Runs mod.work() in one of the ways in which programs do.
HOST = r"""
#include <Python.h>
#include <marshal.h>
static int run_marshalled(const char *path) /* as frozen programs do: no audit event tells of it */
{
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    Py_ssize_t n = (Py_ssize_t)fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    PyObject *code = PyMarshal_ReadObjectFromString(bytes, n);
    return !code || !PyImport_ExecCodeModule("__main__", code);
}
static int call(const char *module)
{
    PyObject *m = PyImport_ImportModule(module);
    return !m || !PyObject_CallMethod(m, "work", NULL);
}
int main(int argc, char **argv)
{
    const char *way = argv[1], *what = argv[2];
    int rc = 1;
    if (strcmp(way, "main") == 0)
        return Py_BytesMain(argc - 1, argv + 1);
    Py_Initialize();
    if (strcmp(way, "string") == 0)
        rc = PyRun_SimpleString(what);
    else if (strcmp(way, "call") == 0)
        rc = call(what);
    else if (strcmp(way, "marshal") == 0)
        rc = run_marshalled(what);
    else if (strcmp(way, "twice") == 0) {
        rc = PyRun_SimpleString(what) | Py_FinalizeEx();
        Py_Initialize();
        rc |= PyRun_SimpleString("import os; print('again', flush=True)");
    } else if (strcmp(way, "inner") == 0) {
        PyThreadState *first = PyThreadState_Get();
        PyThreadState *second = Py_NewInterpreter();
        rc = PyRun_SimpleString("import json");
        Py_EndInterpreter(second);
        PyThreadState_Swap(first);
        rc |= PyRun_SimpleString(what);
    }
    if (PyErr_Occurred())
        PyErr_Print();
    return Py_FinalizeEx() | rc;
}
"""

# Loads the library by itself, as programs with plugins do.
LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | (argv[2][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library)
        return puts(dlerror());
    ((void (*)(void))dlsym(library, "Py_Initialize"))();
    int rc = ((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(argv[3]);
    return ((int (*)(void))dlsym(library, "Py_FinalizeEx"))() | rc;
}
"""

MODULE = ("import os\n"
          "def leaf(): return 1\n"
          "def work():\n"
          "    for i in range(1000): leaf()\n"
          "    print(sorted(k for k in os.environ if 'PRELOAD' in k or 'FATHOM_RUN' in k), flush=True)\n")
CODE = "import mod; mod.work()"


@pytest.fixture(scope="module", params=sorted(INTERPRETERS) or [pytest.param(
    None, marks=pytest.mark.skip(reason="no interpreter of the matrix is here"))])
def host(request, tmp_path_factory):
    """(the folder with the program, its environment, the interpreter)"""
    python = INTERPRETERS[request.param]
    folder = tmp_path_factory.mktemp("host")
    embedded.build(python, folder, HOST)
    (folder / "mod.py").write_text(MODULE)
    home = launch.plain(python, "-c", "import sys; print(sys.base_prefix)").stdout.strip()
    env = {**os.environ, "PYTHONHOME": home, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return folder, env, python


def leaves(recording):
    return calls_of_leaf(recordings.report(recording, "-n", "all"))


def run_and_compare(command, tmp_path, **options):
    """The program's output and status are those of the plain one; its calls of leaf()."""
    alone = launch.plain(*command, **options)
    options["env"] = {**options["env"], "FATHOM_TMPDIR": os.environ["FATHOM_TMPDIR"]}
    under = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", *command, **options)
    assert alone.returncode == 0, alone
    assert (under.returncode, under.stdout) == (alone.returncode, alone.stdout), under
    return under, json.loads(launch.fathom("report", "--json", "-n", "all", tmp_path / "o.fathom").stdout)


def calls_of_leaf(report):
    return [row["calls"] for row in report["functions"] if row["name"] == "leaf"]


@pytest.mark.parametrize("way, what", [("string", CODE), ("call", "mod"), ("main", None), ("twice", CODE),
                                       ("inner", CODE)])
def test_program_that_embeds(host, tmp_path, way, what):
    folder, env, _ = host
    words = ["-c", CODE] if what is None else [what]
    done, report = run_and_compare([folder / "server", way, *words], tmp_path, cwd=folder, env=env)
    assert done.stderr == "" and calls_of_leaf(report) == [1000] and report["notes"] == []


def test_program_that_runs_code_objects(host, tmp_path):
    """What ran before its first import is not in it, all of what follows is."""
    folder, env, python = host
    source = "import mod\nmod.work()\n"
    launch.plain(python, "-c", f"import marshal; open({str(tmp_path / 'code')!r}, 'wb').write("
                 f"marshal.dumps(compile({source!r}, '/srv/frozen.py', 'exec')))")
    done, report = run_and_compare([folder / "server", "marshal", tmp_path / "code"], tmp_path, cwd=folder,
                                   env=env)
    assert done.stderr == "" and calls_of_leaf(report) == [1000]


@pytest.fixture
def loader(host, tmp_path):
    folder, env, python = host
    libdir, version = embedded.settings(python, "LIBDIR", "LDVERSION")
    library = Path(libdir, f"libpython{version}.so")
    if not library.exists():
        pytest.skip("this Python comes without a shared library")
    (tmp_path / "loader.c").write_text(LOADER)
    subprocess.run(["cc", "-w", tmp_path / "loader.c", "-o", tmp_path / "loader", "-ldl"], check=True)
    return [tmp_path / "loader", library], env, folder


def test_library_that_is_loaded_late(loader, tmp_path):
    command, env, folder = loader
    done, report = run_and_compare([*command, "global", CODE], tmp_path, cwd=folder, env=env)
    assert done.stderr == "" and calls_of_leaf(report) == [1000] and report["notes"] == []


def test_library_that_is_loaded_for_itself_alone(loader, tmp_path):
    command, env, folder = loader
    done, report = run_and_compare([*command, "local", "import os; print('LD_PRELOAD' in os.environ)"],
                                   tmp_path, cwd=folder, env=env)
    assert "(RTLD_LOCAL)" in done.stderr and "samples it" in done.stderr
    assert [note["kind"] for note in report["notes"]] == ["unprofiled"]


# ---------------------------------------------------------------- where none can be

def absence(*command, tmp_path, **options):
    done = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", *command, **options)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done
    report = json.loads(launch.fathom("report", "--json", tmp_path / "o.fathom").stdout)
    [note] = report["notes"]
    assert done.stderr == f"fathom run: {note['text']}\n"
    return note["text"]


def test_no_python_at_all(tmp_path):
    text = absence("sh", "-c", "true", tmp_path=tmp_path)
    assert text.startswith("no Python was profiled: none ran, or no agent could get into it")
    assert text.endswith("`fathom run` without --calls, --trace and --lines samples it")


def test_static_program(tmp_path):
    (tmp_path / "s.c").write_text("int main(void) { return 0; }")
    if not shutil.which("cc") or subprocess.run(
            ["cc", "-static", tmp_path / "s.c", "-o", tmp_path / "s"], capture_output=True).returncode:
        pytest.skip("nothing can be linked statically here")
    assert f"{tmp_path / 's'} is linked statically" in absence(tmp_path / "s", tmp_path=tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
def test_privileged_program():
    """Only root may do as its owner would, so the run is somebody else's."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        check_privileged(Path(name))


def check_privileged(place):
    tool, folder = place / "tool", place / "theirs"
    shutil.copy(shutil.which("true"), tool)
    tool.chmod(0o4755)
    folder.mkdir()
    folder.chmod(0o777)
    done = launch.plain("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", launch.FATHOM, "run",
                        "--calls", "-q", "-o", folder / "o.fathom", tool,
                        env={**os.environ, "FATHOM_TMPDIR": str(folder)})
    if done.returncode in (126, 127):
        pytest.skip("others cannot execute this build")
    assert done.returncode == 0 and f"{tool} is privileged" in done.stderr
    assert "sudo fathom run" in done.stderr


def test_child_of_a_static_program(tmp_path):
    """The environment goes through it."""
    (tmp_path / "s.c").write_text("#include <unistd.h>\n#include <stdlib.h>\n"
                                  "int main(int c, char **v) { return execv(v[1], v + 1); }")
    if not shutil.which("cc") or subprocess.run(
            ["cc", "-static", tmp_path / "s.c", "-o", tmp_path / "s"], capture_output=True).returncode:
        pytest.skip("nothing can be linked statically here")
    python = list(INTERPRETERS.values())[0] if INTERPRETERS else sys.executable
    (tmp_path / "mod.py").write_text(MODULE)
    done = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", tmp_path / "s", python, "-c",
                         CODE, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert leaves(tmp_path / "o.fathom") == [1000]


@pytest.mark.parametrize("words", [["-I"], ["-E"], ["-S"], ["-I", "-S"], ["-X", "frozen_modules=off"]],
                         ids=" ".join)
def test_flags_that_cut_python_off(words, tmp_path):
    python = list(INTERPRETERS.values())[-1] if INTERPRETERS else sys.executable
    (tmp_path / "mod.py").write_text(MODULE)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {CODE}"
    done = launch.fathom("run", "--calls", "-q", "-o", tmp_path / "o.fathom", "env", "-i", python, *words, "-c",
                         code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert leaves(tmp_path / "o.fathom") == [1000]
