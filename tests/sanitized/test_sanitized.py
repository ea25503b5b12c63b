"""The agent, the preload library and libfathom.so, built with a sanitizer, inside real Pythons; and the heap library.

SANITIZED names a build folder made with -Db_sanitize=thread or address,undefined. The interpreter is
not instrumented: the sanitizer's library is preloaded into it. ThreadSanitizer sees the GIL all the
same, because it sees the mutex and the condition variable that it is made of. What a program prints
and how it ends is compared with a plain run, and the sanitizer may have nothing to say.

The heap library stands in front of malloc, which ASan and TSan own: its hooks are called by threads of heap.c under them, and
inside real Pythons it is compiled with UBSan alone, in the form that needs no library and ends the program.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

import pythons  # noqa: E402
from launch import FATHOM, REPO  # noqa: E402
from launch import own_run_folders  # noqa: E402, F401 (a fixture)

SANITIZED = Path(os.environ.get("SANITIZED", "")).resolve()
NAME = "tsan" if "thread" in SANITIZED.name else "asan"
OPTIONS = {
    "tsan": {"TSAN_OPTIONS": "report_thread_leaks=0:die_after_fork=0:log_path={}"
                             f":suppressions={HERE}/tsan.supp"},
    "asan": {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:log_path={}",
             "UBSAN_OPTIONS": "print_stacktrace=1:log_path={}"},
}[NAME]
SECONDS = 240

PYTHONS = list(pythons.interpreters().values())
EVERYTHING = str(HERE.parent / "faults" / "program.py")
ENDS = str(HERE.parent / "programs" / "threads_end.py")
TOOLS = str(HERE.parent / "programs" / "own_profiler.py")
RAISING = str(HERE.parent / "programs" / "raising_tools.py")
SHELLS = str(HERE.parent / "programs" / "shells.py")
CHILDREN = str(HERE.parent / "programs" / "starts_children.py")
RACES = str(HERE / "races.py")
HOSTILE = HERE.parent / "programs" / "memory_hostile.py"
HEAP = sorted((REPO / "src/target/heap").rglob("*.c"))
INCLUDED = ("c_world.c", "mappings.c")  # by heap.c, for what they keep to themselves
HOOKS = ("malloc calloc realloc free memalign aligned_alloc posix_memalign valloc pvalloc reallocarray malloc_usable_size "
         "free_sized free_aligned_sized mmap mmap64 munmap mremap").split()

pytestmark = pytest.mark.skipif(not os.environ.get("SANITIZED"),
                                reason="SANITIZED names no build (tools/check-sanitized)")


@pytest.fixture(params=sorted({*PYTHONS[:1], *PYTHONS[-1:]}), ids=os.path.basename)
def python(request):
    return request.param


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    library = tmp_path_factory.mktemp("forks") / "forks.so"
    subprocess.run(["cc", "-shared", "-fPIC", HERE / "forks.c", "-o", library], check=True)
    return str(library)


def sanitizer_library():
    return subprocess.run(["cc", f"-print-file-name=lib{NAME}.so"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def execute(words, env, cwd):
    done = subprocess.run(words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=SECONDS)
    # A Python says so when a process with threads forks, and a sanitizer may have one of its own.
    said = re.sub(r"\S+: DeprecationWarning: .*fork.*\n.*\n", "", done.stderr)
    return done.stdout.replace("['LD_PRELOAD']", "[]").replace("profiled", "plain"), said, done.returncode


def expect_as_plain(tmp_path, python, options, words):
    """Run it plain; then with the sanitized libraries, under `fathom run` or, without options, by
    itself."""
    package = SANITIZED / "python"
    env = {**os.environ, "PYTHONPATH": str(package), "FATHOM_AGENTS": str(package / "fathom")}
    plain = execute([python, *words], {**env, "PYTHONPATH": str(Path(FATHOM).parent / "python")},
                    tmp_path)
    reports = tmp_path / "reports"
    reports.mkdir()
    env.update({key: value.format(reports / "report") for key, value in OPTIONS.items()})
    command = ["env", f"LD_PRELOAD={sanitizer_library()}", python, *words]
    if options:
        command = [FATHOM, "run", *options, "--quiet", "-o", str(tmp_path / "o.fathom"), *command]
    under = execute(command, env, tmp_path)
    found = [path.read_text() for path in sorted(reports.iterdir())]
    assert not found, "\n".join(found)[:8000]
    assert under == plain


@pytest.mark.parametrize("options", [["--calls"], ["--calls", "--no-c-calls"], ["--lines=mine"],
                                     ["--calls", "--lines=mine"], ["--trace"],
                                     ["--trace", "--min-duration", "20us", "--exclude", "work"]], ids=" ".join)
@pytest.mark.parametrize("program", [EVERYTHING, ENDS, TOOLS, RAISING], ids=os.path.basename)
def test_collectors(python, program, options, tmp_path):
    expect_as_plain(tmp_path, python, options, [program])


@pytest.mark.parametrize("options", [["--calls"], ["--calls", "--lines=mine"], ["--trace"], []],
                         ids=["under calls", "under lines", "under trace", "by itself"])
def test_profiles_threads_and_forks_without_the_gil(python, options, forks, tmp_path):
    expect_as_plain(tmp_path, python, options, [RACES, forks])


@pytest.mark.parametrize("way", ["observe", "threads"])
def test_shells(python, way, tmp_path):
    expect_as_plain(tmp_path, python, ["--calls"], [SHELLS, way])


@pytest.mark.parametrize("way", ["subprocess", "c_popen", "fork"])
def test_children(way, tmp_path):
    if NAME == "tsan":
        pytest.skip("no thread has a part in it")
    expect_as_plain(tmp_path, sys.executable, ["--calls"], [CHILDREN, way])


def compile_c(sources, output, *flags):
    subprocess.run(["cc", "-g", "-O1", "-w", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", f"-I{REPO}/src", *flags,
                    *map(str, sources), "-o", str(output), "-lpthread", "-ldl"], check=True)


@pytest.fixture(scope="session")
def heap(tmp_path_factory):
    program = tmp_path_factory.mktemp("heap") / "heap"
    sanitizer = "thread" if NAME == "tsan" else "address,undefined"
    compile_c([HERE / "heap.c", *(path for path in HEAP if path.name not in INCLUDED)], program, "-rdynamic",
              f"-fsanitize={sanitizer}", "-fno-sanitize-recover=undefined", *(f"-D{name}=counted_{name}" for name in HOOKS))
    return program


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("mode", ["all", "malloc"])
def test_the_heap_library_among_threads_and_forks(heap, mode, seed, tmp_path):
    reports = tmp_path / "reports"
    reports.mkdir()
    env = {**os.environ, **{key: value.format(reports / "report") for key, value in OPTIONS.items()}}
    done = subprocess.run([heap, tmp_path, mode, str(seed)], env=env, capture_output=True, text=True, timeout=SECONDS)
    assert not "\n".join(path.read_text() for path in reports.iterdir())[:8000]
    assert (done.stdout, done.returncode) == ("as it was done\n", 0), done.stderr[-3000:]


@pytest.fixture(scope="session")
def trapping(tmp_path_factory):
    """The package with a heap library that ends the program where its behaviour is not defined."""
    folder = tmp_path_factory.mktemp("trapping") / "fathom"
    folder.mkdir()
    for path in (Path(FATHOM).resolve().parent / "python" / "fathom").iterdir():
        if path.name != "libfathom_heap.so":
            (folder / path.name).symlink_to(path)
    compile_c(HEAP, folder / "libfathom_heap.so", "-shared", "-fPIC", "-fvisibility=hidden", "-fsanitize=undefined",
              "-fsanitize-undefined-trap-on-error")
    return folder


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    library = tmp_path_factory.mktemp("hostile") / "hostile.so"
    compile_c([HOSTILE.parent / "hostile.c"], library, "-shared", "-fPIC")
    return str(library)


@pytest.mark.skipif(NAME == "tsan", reason="once is enough")
@pytest.mark.parametrize("way", ["forks_among_threads", "python_forks_among_threads", "thread_ends", "signals", "at_exit",
                                 "deepbind", "other_allocator", "contexts"])
@pytest.mark.parametrize("mode", ["--memory", "--memory=malloc"])
def test_the_heap_library_inside_python(python, mode, way, trapping, hostile, tmp_path):
    words = [str(HOSTILE), way, hostile]
    plain = execute([python, *words], dict(os.environ), tmp_path)
    under = execute([FATHOM, "run", mode, "--quiet", "-o", str(tmp_path / "o.fathom"), "--python", python, *words],
                    {**os.environ, "FATHOM_AGENTS": str(trapping)}, tmp_path)
    assert under == plain
