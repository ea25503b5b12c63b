"""Allocators inside of libraries. Apache Arrow's (25 and later) is called through exported names: two small libraries that do the
same stand in for it."""

import subprocess
import textwrap

import launch
import pytest
import recordings

MB = 1_000_000

# An allocator that knows its own blocks: those of another make it abort. What it takes from the system is not what was asked for.
LIBRARY = textwrap.dedent("""
    #define _GNU_SOURCE
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    struct head { char owner[16]; size_t bytes, mapped; char *start; };
    void *arrow_mi_malloc_aligned(size_t bytes, size_t alignment)
    {
        size_t mapped = bytes + alignment + (1 << 20);
        char *start = mmap(0, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED)
            return NULL;
        char *block = (char *)(((size_t)start + sizeof(struct head) + alignment - 1) & ~(alignment - 1));
        *((struct head *)block - 1) = (struct head){ NAME, bytes, mapped, start };
        return block;
    }
    void arrow_mi_free(void *block)
    {
        struct head *head = (struct head *)block - 1;
        if (!block)
            return;
        if (strcmp(head->owner, NAME) != 0)
            abort();
        munmap(head->start, head->mapped);
    }
    void *arrow_mi_realloc_aligned(void *old, size_t bytes, size_t alignment)
    {
        if (bytes > (size_t)1 << 45)
            return NULL;
        void *block = arrow_mi_malloc_aligned(bytes, alignment);
        if (old) {
            size_t had = ((struct head *)old - 1)->bytes;
            memcpy(block, old, had < bytes ? had : bytes);
            arrow_mi_free(old);
        }
        return block;
    }
    void *pool_take(size_t bytes) { return arrow_mi_malloc_aligned(bytes, 64); }
    void *pool_resize(void *block, size_t bytes) { return arrow_mi_realloc_aligned(block, bytes, 64); }
    void pool_give(void *block) { arrow_mi_free(block); }
""")

PROGRAM = """
import ctypes, os, sys
def load(path):
    library = ctypes.CDLL(path)
    library.pool_take.restype = library.pool_resize.restype = ctypes.c_void_p
    library.pool_take.argtypes = [ctypes.c_size_t]
    library.pool_resize.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.pool_give.argtypes = [ctypes.c_void_p]
    return library
first, second = map(load, sys.argv[1:3])
def kept():
    return first.pool_take(30_000_000)  # kept
def grown(block):
    return second.pool_resize(block, 20_000_000)  # grown
def gone():
    return second.pool_take(50_000_000)  # gone
a = kept()
b = grown(second.pool_take(1_000_000))  # small
assert second.pool_resize(b, 1 << 46) is None
second.pool_give(gone())
assert first.pool_resize(None, 10) is not None
first.pool_give(None)
if len(sys.argv) > 3:
    first.pool_give(a)
    second.pool_give(b)
print("done", flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrow")
    source = folder / "arrow.c"
    source.write_text(LIBRARY)
    paths = [folder / "libfirst.so", folder / "libsecond.so"]
    for path in paths:
        subprocess.run([*launch.COMPILER, "-shared", "-fPIC", "-O1", f'-DNAME="{path.stem}"', "-o", path, source],
                       check=True)
    return paths


def lines(tmp_path, python, libraries, *words, memory="--memory"):
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(PROGRAM)
    done = launch.run(script, *libraries, *words, python=python, output=output, collectors=(memory,))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done
    marks = {number: text.split("# ")[1] for number, text in enumerate(PROGRAM.splitlines(), 1) if "# " in text}
    report = recordings.report(output, "--memory", "--at", "all")
    return {marks[row["line"]]: row for row in report["functions"]
            if row["file"] == str(script) and row["line"] in marks}, report


def test_its_blocks_are_at_the_line_that_asked(python, tmp_path, libraries):
    rows, report = lines(tmp_path, python, libraries)
    slack = 2000  # ctypes
    assert rows["kept"]["leaked_bytes"] == pytest.approx(30 * MB, abs=slack)
    assert rows["grown"]["leaked_bytes"] == pytest.approx(20 * MB, abs=slack)
    assert rows["small"]["leaked_bytes"] == pytest.approx(0, abs=slack)
    assert rows["small"]["allocated_bytes"] == pytest.approx(1 * MB, abs=slack)
    assert rows["gone"]["allocated_bytes"] == pytest.approx(50 * MB, abs=slack)
    assert rows["gone"]["leaked_bytes"] == pytest.approx(0, abs=slack)
    # What the allocators took from the system is not there a second time: 100 MB in all, and Python's own.
    assert 100 * MB < report["memory"]["peak_bytes"] < 112 * MB
    # One was refused.
    assert any(str(1 << 46) in note["text"] for note in report["notes"])


def test_what_is_given_back_is_gone(python, tmp_path, libraries):
    rows, _ = lines(tmp_path, python, libraries, "give")
    assert all(abs(row["leaked_bytes"]) < 2000 for row in rows.values())


def test_estimates_know_them_too(tmp_path, libraries):
    rows, _ = lines(tmp_path, launch.sys.executable, libraries, memory="--memory=sampled")
    assert rows["kept"]["leaked_bytes"] == pytest.approx(30 * MB, rel=0.2)
    assert rows["grown"]["leaked_bytes"] == pytest.approx(20 * MB, rel=0.2)


def test_without_a_recording_it_is_passed_on(tmp_path, libraries):
    """A program that is no Python, or whose memory nobody records: the libraries work as ever."""
    script = tmp_path / "app.py"
    script.write_text(PROGRAM)
    done = launch.run(script, *libraries, output=tmp_path / "o.fathom", collectors=("--calls",))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
