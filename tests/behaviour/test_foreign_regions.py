"""Regions that libraries wrote already: LSST's timeMethod and time_this, petsc4py's events and stages, PyOP2's by these. The libraries are
stand-ins, written after what theirs do; entries are worked out by hand."""

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

import recordings
import trace_words
from conftest import PACKAGE
from launch import own_run_folders, run  # noqa: F401 (a fixture)

ALL = ["--calls", "--lines", "--memory", "--trace"]

LSST = {"lsst/utils/timer.py": """
    import contextlib, functools

    def logInfo(obj, prefix):
        obj.metadata.append(prefix)

    def timeMethod(_func=None, *, metadata=None, logger=None, logLevel=10):
        def decorator_timer(func):
            @functools.wraps(func)
            def timeMethod_wrapper(self, *args, **keyArgs):
                logInfo(self, func.__name__ + "Start")
                try:
                    res = func(self, *args, **keyArgs)
                finally:
                    logInfo(self, func.__name__ + "End")
                return res
            return timeMethod_wrapper
        return decorator_timer if _func is None else decorator_timer(_func)

    @contextlib.contextmanager
    def time_this(log=None, msg=None, level=10, prefix="timer", args=()):
        try:
            yield object()
        finally:
            msg = msg or ""
    """}

TASKS = """
    import inspect, pickle, threading
    from lsst.utils.timer import time_this, timeMethod
    class Task:
        def __init__(self): self.metadata = []
        @timeMethod
        def run(self, n):
            with time_this(msg="part %s", args=(n,)):
                self.deeper(n)
            with time_this():
                pass
            return n
        @timeMethod(logLevel=5)
        def deeper(self, n):
            "Its text."
            if n == 2:
                raise KeyError(n)
            if n > 10:
                self.deeper(n - 1)
    def work():
        task = Task()
        for n in (0, 1, 2, 12):
            try:
                task.run(n)
            except KeyError as error:
                print(error.__traceback__.tb_next.tb_frame.f_code.co_name)
        print(task.metadata)
    work()
    thread = threading.Thread(target=work)
    thread.start(); thread.join()
    print(pickle.loads(pickle.dumps(timeMethod)) is timeMethod, inspect.signature(Task.deeper), Task.deeper.__doc__,
          Task.run.__wrapped__.__qualname__, inspect.getsource(timeMethod)[:14], inspect.signature(time_this))
    """

# Of two threads: run is entered four times in each, once with an exception; deeper once for each of them and, as 12 leads to 11 and 10, twice more.
TASKS_REGIONS = {"Task.run": (8, 0), "Task.run/part %s": (8, 0), "Task.run/part %s/Task.deeper": (12, 0), "Task.run/time_this": (6, 0)}

# Methods of all the kinds that Cython makes of begin(*objs), end(*objs), push() and pop().
PETSC_C = r"""
#include <Python.h>
#include <structmember.h>

typedef struct { PyObject_HEAD PyObject *name; } log_object;
static int init(log_object *self, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *name;
    if (!PyArg_ParseTuple(args, "U", &name))
        return -1;
    self->name = Py_NewRef(name);
    return 0;
}
static void dealloc(log_object *self) { Py_XDECREF(self->name); Py_TYPE(self)->tp_free((PyObject *)self); }
static PyObject *begin(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)self;
    if (PyTuple_GET_SIZE(args) > 1 || keywords)
        return PyErr_Format(PyExc_TypeError, "%zd objects", PyTuple_GET_SIZE(args));
    Py_RETURN_NONE;
}
static PyObject *end(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)self, (void)args;
    if (count > 1 || names)
        return PyErr_Format(PyExc_TypeError, "%zd objects", count);
    Py_RETURN_NONE;
}
static PyObject *nothing(PyObject *self, PyObject *none) { (void)self; return none ? NULL : Py_NewRef(Py_None); }
static PyObject *enter_by(PyObject *self, const char *method)
{
    PyObject *done = PyObject_CallMethod(self, method, NULL);
    Py_XDECREF(done);
    return done ? Py_NewRef(self) : NULL;
}
static PyObject *event_enter(PyObject *self, PyObject *none) { (void)none; return enter_by(self, "begin"); }
static PyObject *stage_enter(PyObject *self, PyObject *none) { (void)none; return enter_by(self, "push"); }
static PyObject *event_exit(PyObject *self, PyObject *args) { (void)args; return PyObject_CallMethod(self, "end", NULL); }
static PyObject *stage_exit(PyObject *self, PyObject *args) { (void)args; return PyObject_CallMethod(self, "pop", NULL); }

static PyMemberDef members[] = { { "name", T_OBJECT_EX, offsetof(log_object, name), READONLY, NULL }, { 0 } };
static PyMethodDef event_methods[] = {
    { "begin", (PyCFunction)(void (*)(void))begin, METH_VARARGS | METH_KEYWORDS, "begin(self, *objs)" },
    { "end", (PyCFunction)(void (*)(void))end, METH_FASTCALL | METH_KEYWORDS, "end(self, *objs)" },
    { "__enter__", event_enter, METH_NOARGS, NULL }, { "__exit__", event_exit, METH_VARARGS, NULL }, { 0 } };
static PyMethodDef stage_methods[] = {
    { "push", nothing, METH_NOARGS, NULL }, { "pop", nothing, METH_NOARGS, NULL },
    { "__enter__", stage_enter, METH_NOARGS, NULL }, { "__exit__", stage_exit, METH_VARARGS, NULL }, { 0 } };
#define TYPE(NAME, METHODS) { PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "petsc4py.PETSc." NAME, .tp_basicsize = sizeof(log_object), \
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_methods = METHODS, .tp_members = members, .tp_init = (initproc)init, \
    .tp_new = PyType_GenericNew, .tp_dealloc = (destructor)dealloc }
static PyTypeObject event_type = TYPE("LogEvent", event_methods), stage_type = TYPE("LogStage", stage_methods);
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, .m_name = "petsc4py.PETSc", .m_size = -1 };

PyMODINIT_FUNC PyInit_PETSc(void)
{
    PyObject *m = PyModule_Create(&module);
    if (m && (PyModule_AddType(m, &event_type) < 0 || PyModule_AddType(m, &stage_type) < 0))
        Py_CLEAR(m);
    return m;
}
"""

PETSC = {
    "petsc4py/__init__.py": "",
    "petsc4py/PETSc.py": """
        from petsc4py.lib import ImportPETSc
        ImportPETSc(None)
        """,
    "petsc4py/lib/__init__.py": """
        def ImportPETSc(arch=None):
            import glob, importlib.util, os, sys
            file = glob.glob(os.path.join(os.path.dirname(__file__), "PETSc*.so"))[0]
            spec = importlib.util.spec_from_file_location("petsc4py.PETSc", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules["petsc4py.PETSc"] = sys.modules["petsc4py"].PETSc = module
            class Log:
                Event, Stage = module.LogEvent, module.LogStage
            module.Log = Log
            return module
        """,
    "pyop2/profiling.py": """
        from functools import wraps
        from petsc4py import PETSc
        timed_stage = PETSc.Log.Stage
        timed_region = PETSc.Log.Event
        class timed_function:
            def __init__(self, name=None): self.name = name
            def __call__(self, f):
                @wraps(f)
                def wrapper(*args, **kwargs):
                    with timed_region(self.name or f.__name__):
                        return f(*args, **kwargs)
                return wrapper
        """,
}

SOLVER = """
    import inspect
    from petsc4py import PETSc
    from pyop2.profiling import timed_function, timed_region, timed_stage
    @timed_function("ParLoopExecute")
    def execute(): pass
    @timed_function()
    def assemble():
        execute(); execute()
    for step in range(3):
        with timed_stage("time step"):
            assemble()
            with timed_region("solve"):
                pass
    event = PETSc.Log.Event("by hand")
    bound = event.begin
    for i in range(4):
        bound(i) if i % 2 else event.begin()
        event.end(event)
    try:
        event.begin(1, 2)
    except TypeError as error:
        print(error)
    try:
        with event:
            raise KeyError(1)
    except KeyError as error:
        print(repr(error))
    stage = PETSc.Log.Stage("pushed")
    stage.push(); stage.pop()
    def steps():
        with event:
            yield 1
            yield 2
    print(list(steps()))
    print(type(PETSc.LogEvent.begin), PETSc.LogEvent.begin, PETSc.LogEvent.begin.__doc__, sorted(vars(PETSc.LogStage)), timed_region)
    """

SOLVER_REGIONS = {"time step": (3, 0), "time step/assemble": (3, 0), "time step/assemble/ParLoopExecute": (6, 0), "time step/solve": (3, 0),
                  "by hand": (6, 0), "pushed": (1, 0)}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


@pytest.fixture
def lsst(tmp_path):
    write(tmp_path, LSST)


@pytest.fixture
def petsc(python, tmp_path):
    write(tmp_path, PETSC)
    (tmp_path / "petsc.c").write_text(PETSC_C)
    include = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True,
                             check=True).stdout.strip()
    if not shutil.which("cc") or not Path(include, "Python.h").exists():
        pytest.skip("there is no C compiler, or no Python.h of this Python")
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-I", include, str(tmp_path / "petsc.c"), "-o",
                           str(tmp_path / "petsc4py/lib/PETSc.so")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def environment(tmp_path, **more):
    return dict(os.environ, PYTHONPATH=f"{PACKAGE}:{tmp_path}", **more)


def plain(python, tmp_path, code, **more):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run([python, str(script)], env=environment(tmp_path, **more), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def record(python, tmp_path, code, *options):
    """{"outer/inner": (entered, open)}, and what the program printed, which is what it prints without Fathom."""
    expected = plain(python, tmp_path, code)
    output = tmp_path / "out.fathom"
    done = run(*options, tmp_path / "program.py", python=python, output=output, collectors=(), env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected.stdout
    rows = recordings.report(output, "--regions")["regions"]
    return {"/".join(row["path"]): (row["entered"], row["open"]) for row in rows}


@pytest.mark.parametrize("option", ALL)
def test_methods_of_lsst(python, tmp_path, lsst, option):
    assert record(python, tmp_path, TASKS, option) == TASKS_REGIONS


@pytest.mark.parametrize("option", ALL)
def test_events_of_petsc_and_pyop2(python, tmp_path, petsc, option):
    assert record(python, tmp_path, SOLVER, option) == SOLVER_REGIONS


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_sampled_run_hears_of_them_once_the_program_uses_regions(python, tmp_path, lsst, petsc, before):
    """Whether the libraries were imported before that or come later."""
    used = "import fathom; fathom.region('x')\n"
    code = textwrap.dedent(TASKS) + textwrap.dedent(SOLVER)
    imports = "import lsst.utils.timer\nfrom petsc4py import PETSc\n"
    rows = record(python, tmp_path, imports + used + code if before else used + code, "--sample")
    assert rows == {**TASKS_REGIONS, **SOLVER_REGIONS}


def test_the_table_has_them(python, tmp_path, lsst, petsc):
    code = "import fathom; fathom.region('x')\n" + textwrap.dedent(TASKS) + textwrap.dedent(SOLVER)
    lines = plain(python, tmp_path, code, FATHOM_SUMMARY="1").stderr.splitlines()
    counts = {line.split("%")[1].strip() if "part" not in line else "part": int(line.split()[0]) for line in lines if " % " in line}
    names = {path.rpartition("/")[2].replace("part %s", "part"): entered for path, (entered, _) in {**TASKS_REGIONS, **SOLVER_REGIONS}.items()}
    assert counts == names


def test_in_a_trace_they_are_spans_inside_of_their_call(python, tmp_path, lsst, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{PACKAGE}:{tmp_path}")
    (one,) = trace_words.trace(python, tmp_path, """
        from lsst.utils.timer import timeMethod
        class Task:
            metadata = []
            @timeMethod
            def run(self, n): return 1 // n
        for n in (1, 0):
            try:
                Task().run(n)
            except ZeroDivisionError:
                pass
        """, c_calls=0)
    words, shown = [], []
    for event in one.main():
        if event.kind == "call":
            shown.append(one.defs.functions[event.numbers[0]].rpartition(".")[2])
            words.append(f"call {shown[-1]}")
        elif event.kind in ("return", "unwind"):
            words.append(f"{event.kind} {shown.pop()}")
        elif event.kind in ("resume", "throw"):
            shown.append("")
        elif event.kind == "yield":
            shown.pop()
        elif event.kind in ("region_begin", "region_end") and event.numbers[0]:
            words.append(f"{event.kind} {one.defs.names[event.numbers[0]]}")
    del words[: words.index("call timeMethod_wrapper")]
    wanted = ("timeMethod_wrapper", "Task.run", "run")
    words = [word for word in words if word.partition(" ")[2] in wanted]
    assert words == ["call timeMethod_wrapper", "region_begin Task.run", "call run", "return run", "region_end Task.run",
                     "return timeMethod_wrapper",
                     "call timeMethod_wrapper", "region_begin Task.run", "call run", "unwind run", "region_end Task.run",
                     "unwind timeMethod_wrapper"]


def test_code_of_the_same_name_elsewhere_is_none(python, tmp_path):
    write(tmp_path, {"other/timer.py": LSST["lsst/utils/timer.py"]})
    rows = record(python, tmp_path, """
        import fathom
        from other.timer import time_this
        with time_this(msg="no"), fathom.region("yes"):
            pass
        """, "--calls")
    assert rows == {"yes": (1, 0)}
