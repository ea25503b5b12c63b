"""Every context of the memory collector against a walk over all frames.

The heap library is compiled here with tests/contexts/verify.c in the place of context.c: a program
whose context was wrong once ends by SIGABRT. So ordinary programs and tests of the standard library are
tests of the contexts, on every Python.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "behaviour"))

import heap_stores  # noqa: E402
import pythons  # noqa: E402
from launch import REPO, program  # noqa: E402

PROGRAMS = ["memory_known.py", "orbits.py", "lines_workload.py", "threads_end.py", "code_objects.py",
            "sampled_tasks.py"]
# None that recurses as deep as it can: a walk over all frames for every block takes hours there.
STANDARD = ["test_generators", "test_coroutines", "test_contextlib", "test_gc", "test_queue"]


@pytest.fixture(params=pythons.VERSIONS)
def python(request):
    path = pythons.interpreters().get(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine (tools/pythons provide)")
    return path


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The folder of the package with a heap library that checks itself."""
    folder = tmp_path_factory.mktemp("verifying")
    for path in heap_stores.LIBRARIES.glob("*.so"):
        (folder / path.name).symlink_to(path)
    sources = [path for path in sorted((REPO / "src/target/heap").rglob("*.c"))
               if path.name != "context.c"]
    (folder / "libfathom_heap.so").unlink()
    subprocess.run(["cc", "-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-fvisibility=hidden",
                    "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", f"-I{REPO / 'src'}",
                    HERE / "verify.c", *sources, "-o", folder / "libfathom_heap.so", "-ldl"],
                   check=True)
    return folder


def verify(tmp_path, libraries, python, words, mode):
    """Run it plain and checked; how many events were checked, and how many had an anchor."""
    plain = subprocess.run([python, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           cwd=tmp_path, timeout=600)
    told, folder = tmp_path / "told", tmp_path / "run"
    folder.mkdir()
    env = heap_stores.environment(folder, mode, libraries, VERIFIED=str(told))
    done = subprocess.run([python, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          cwd=tmp_path, env=env, timeout=1200)
    assert done.returncode == plain.returncode, done.stderr[-2000:]
    assert "but the frames are" not in done.stderr
    counts = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


@pytest.mark.parametrize("mode", ["all", "malloc"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(python, libraries, name, mode, tmp_path):
    if name == "memory_known.py":  # ends at once, and tells nothing
        source = Path(program(name)).read_text().replace("os._exit(0)", "")
        (tmp_path / name).write_text(source)
        words = [str(tmp_path / name)]
    else:
        words = [program(name)]
    events, _ = verify(tmp_path, libraries, python, words, mode)
    assert events > (1000 if mode == "all" else 10)


@pytest.mark.parametrize("name", STANDARD)
def test_tests_of_the_standard_library(python, libraries, name, tmp_path):
    if subprocess.run([python, "-c", f"import test.{name}"], capture_output=True).returncode:
        pytest.skip("this Python came without its tests")
    events, anchored = verify(tmp_path, libraries, python, ["-m", "test", name], "all")
    assert events > 10_000 and anchored > 0
