"""include/fathom.h: regions of C code, with the GIL and without, in threads that Python does not know."""

import os
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

import recordings
from conftest import PACKAGE
from launch import COMPILER, own_run_folders, run  # noqa: F401 (a fixture)

INCLUDE = str(Path(PACKAGE) / "fathom" / "include")

C = r"""
#define FATHOM_FUNCTIONS
#include <fathom.h>
#include <pthread.h>
#include <stdio.h>

static void inner(void)
{
    FATHOM_REGION("inner");
}

void work(int times)
{
    for (int i = 0; i < times; i++) {
        fathom_region_begin("c work");
        inner();
        fathom_region_end();
    }
    fathom_counter("count", times);
    fathom_instant("done");
}

static void *in_thread(void *name)
{
    for (int i = 0; i < 1000; i++) {
        fathom_region_begin(name);
        inner();
        fathom_region_end();
    }
    return NULL;
}

void threads(void)
{
    pthread_t all[4];
    const char *names[] = { "thread 0", "thread 1", "thread 2", "thread 3" };
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, in_thread, (void *)names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

static fathom_span span;
void begin_span(void) { span = fathom_span_begin("span"); }
void end_span(void) { fathom_span_end(span); fathom_span_end(span); }
void end_too_often(void) { fathom_region_end(); fathom_region_end(); }
int recording(void) { return fathom_hooks_1.recording; }
"""


def compile_with(compiler, source, output, *options):
    done = subprocess.run([*compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, *options,
                           str(source), "-o", str(output), "-pthread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    source = folder / "work.c"
    source.write_text(C)
    return compile_with(COMPILER, source, folder / "work.so")


@pytest.fixture
def record(python, tmp_path, library):
    def call(code, *options):
        script = tmp_path / "program.py"
        script.write_text(f"import ctypes\nfree = ctypes.CDLL({str(library)!r})\nheld = ctypes.PyDLL({str(library)!r})\n"
                          + textwrap.dedent(code))
        output = tmp_path / "out.fathom"
        done = run(*options, script, python=python, output=output, collectors=(),
                   env=dict(os.environ, PYTHONPATH=PACKAGE))
        assert done.returncode == 0, done.stderr
        rows = recordings.report(output, "--regions")["regions"]
        return {"/".join(row["path"]): (row["entered"], row["open"]) for row in rows}

    return call


@pytest.mark.parametrize("option", ["--calls", "--memory"])
def test_c_regions_nest_with_those_of_python(record, option):
    rows = record("""
        import fathom
        with fathom.region("python"):
            held.work(10)
            free.work(5)
        free.work(1)
        held.begin_span(); free.end_span(); free.end_too_often()
        """, option)
    assert rows == {"python": (1, 0), "python/c work": (15, 0), "python/c work/inner": (15, 0), "c work": (1, 0),
                    "c work/inner": (1, 0), "span": (1, 0)}


def test_threads_without_the_gil(record):
    """C threads beside Python ones, which all define, enter and leave regions at the same time."""
    rows = record("""
        import fathom, threading
        def work():
            for i in range(300):
                with fathom.region(f"python {i % 7}"):
                    held.work(1)
        threads = [threading.Thread(target=free.threads)] + [threading.Thread(target=work) for i in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """, "--calls")
    for i in range(4):
        assert rows.pop(f"thread {i}") == rows.pop(f"thread {i}/inner") == (1000, 0)
    counts = {name: 3 * len(range(number, 300, 7)) for number in range(7) for name in
              (f"python {number}", f"python {number}/c work", f"python {number}/c work/inner")}
    assert rows == {name: (count, 0) for name, count in counts.items()}


def test_a_sampled_run_hears_of_them_once_the_program_uses_regions(record):
    rows = record("""
        assert not free.recording()
        import fathom
        fathom.region("x")
        assert free.recording()
        free.work(2)
        """, "--sample")
    assert rows == {"c work": (2, 0), "c work/inner": (2, 0)}


def test_children_of_fork(record):
    rows = record("""
        import fathom, os
        free.threads()
        free.work(1)
        with fathom.region("parent"):
            if not os.fork():
                held.work(2)
                os._exit(0)
            os.wait()
        """, "--calls")
    assert rows["parent"] == (1, 0) and rows["c work"] == (3, 0) and rows["thread 3"] == (1000, 0)


def test_nothing_happens_without_a_recording(python, library, tmp_path):
    script = f"import ctypes; l = ctypes.CDLL({str(library)!r}); l.work(3); l.begin_span(); l.end_span(); print(l.recording())"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_the_table_has_them(python, library, tmp_path):
    script = f"import ctypes, fathom; l = ctypes.CDLL({str(library)!r}); fathom.region('x'); l.work(3)"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE, FATHOM_SUMMARY="1"))
    lines = done.stderr.splitlines()
    assert [(line.split()[0], line.rsplit("%", 1)[1]) for line in lines[2:]] == [("3", "  c work"), ("3", "    inner")]


def test_two_files_that_include_it_are_linked_together(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.c").write_text(f'#include <fathom.h>\nvoid {name}(void);\n'
                                            f'void {name}(void) {{ FATHOM_REGION("{name}"); fathom_instant("x"); }}\n')
    compiler = COMPILER
    compile_with(compiler, tmp_path / "a.c", tmp_path / "both.so", str(tmp_path / "b.c"), "-fvisibility=hidden")
    compile_with(compiler, tmp_path / "a.c", tmp_path / "off.so", str(tmp_path / "b.c"), "-DFATHOM_OFF", "-std=c99",
                 "-pedantic")


def test_cpp(python, tmp_path):
    compiler = shlex.split(os.environ.get("CXX") or "") or [shutil.which("c++") or shutil.which("g++")]
    if not compiler[0]:
        pytest.skip("no C++ compiler on this machine")
    source = tmp_path / "work.cpp"
    source.write_text('#include <fathom.h>\nextern "C" void work() { fathom_region whole("cpp"); FATHOM_REGION("inner"); }\n')
    library = compile_with(compiler, source, tmp_path / "work.so", "-std=c++11")
    script = f"import ctypes, fathom; l = ctypes.CDLL({str(library)!r}); fathom.summarize(); l.work(); fathom.summary()"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert [line.split()[-1] for line in done.stderr.splitlines()[2:]] == ["cpp", "inner"], done.stderr
