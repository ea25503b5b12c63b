"""What resident memory is made of (`fathom report --memory=resident`), by programs whose memory is known."""

import csv
import io
import subprocess
import textwrap

import groups
import launch
import pytest
import recordings

MB = 1_000_000
SLACK = 3 * MB  # what an interpreter needs for imports and tables beside it

START = """
import ctypes, mmap, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
NORESERVE = 0x4000
"""
STAY = """
time.sleep(0.6)
os._exit(0)
"""
STACK = """
def use():  # ten million bytes of the stack of this thread, far below what runs
    attributes, start, size = ctypes.create_string_buffer(64), ctypes.c_void_p(), ctypes.c_size_t()
    libc.pthread_self.restype = ctypes.c_ulong
    libc.pthread_getattr_np(ctypes.c_ulong(libc.pthread_self()), attributes)
    libc.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    libc.memset(start.value + size.value // 2, 1, 10_000_000)
    time.sleep(60)
threading.stack_size(64 << 20)
thread = threading.Thread(target=use)
thread.start()
"""

# What a program does, and by how much that changes the parts, and what is untouched.
PROGRAMS = {
    "python": ("x = bytearray(100_000_000)", {"python": 100 * MB}),
    "objects": ("x = [bytes(100) + b'x' for _ in range(400_000)]", {"python": 400_000 * (134 + 8), "pymalloc": 400_000 * 10}),
    # Each second one is freed: a block of 144 bytes of which 134 were asked for, and the one before it.
    "holes": ("x = [bytes(100) + b'x' for _ in range(400_000)]\ndel x[::2]",
              {"python": 200_000 * (134 + 8), "pymalloc": 200_000 * (144 + 10)}),
    "malloc": ("x = libc.malloc(50_000_000)\nlibc.memset(x, 1, 50_000_000)", {"c": 50 * MB}),
    "untouched": ("x = libc.malloc(300_000_000)\nlibc.memset(x, 1, 100_000_000)", {"c": 100 * MB, "untouched": 200 * MB}),
    # What the C library keeps for the next one who asks: not at the end of its heap, which it would give back.
    "chunks": ("x = [libc.malloc(4000) for _ in range(20_000)]\nfor p in x: libc.memset(p, 1, 4000)\n"
               "for p in x[:-1:2]: libc.free(p)", {"c": 40 * MB, "malloc": 40 * MB}),
    "mapping": ("x = mmap.mmap(-1, 200_000_000, flags=PRIVATE)\nx[:50_000_000] = bytes(50_000_000)",
                {"mappings": 50 * MB, "untouched": 150 * MB}),
    "given back": ("x = mmap.mmap(-1, 80_000_000, flags=PRIVATE)\nx[:] = bytes(80_000_000)\n"
                   "x.madvise(mmap.MADV_DONTNEED)", {"untouched": 80 * MB}),
    "shared": ("x = mmap.mmap(-1, 60_000_000)\nx[:20_000_000] = bytes(20_000_000)", {"shared": 20 * MB}),
    "file": ("with open(sys.argv[1], 'wb') as f: f.write(bytes(40_000_000))\n"
             "x = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)\n"
             "sum(x[i] for i in range(0, 40_000_000, 4096))", {"files": 40 * MB}),
    "stack": (STACK, {"stacks": 10 * MB}),
    "reserved": ("x = libc.mmap(None, 1 << 30, 3, PRIVATE | NORESERVE, -1, 0)\nlibc.memset(x, 1, 30_000_000)",
                 {"reserved": 30 * MB}),
    "only addresses": ("x = libc.mmap(None, 1 << 40, 0, PRIVATE | NORESERVE, -1, 0)", {}),
}


def account(tmp_path, python, code, *words):
    """The last account, of what it has when it sleeps."""
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(START + code + STAY)
    done = launch.run("--force", script, tmp_path / "file", *words, python=python, output=output, collectors=("--memory",))
    assert (done.returncode, done.stderr) == (0, ""), done
    report = recordings.report(output, "--memory=resident")
    last, = [row for row in report["residents"] if row["when"] == "last"]
    return last, report


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What a program has that does nothing, by Python."""
    known = {}

    def of(python):
        if python not in known:
            known[python] = account(tmp_path_factory.mktemp("plain"), python, "")[0]
        return known[python]

    return of


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_part_is_what_it_is(python, tmp_path, plain, name):
    code, expected = PROGRAMS[name]
    last, _ = account(tmp_path, python, code)
    parts = dict(last["parts"], untouched=last["untouched_bytes"])
    before = dict(plain(python)["parts"], untouched=plain(python)["untouched_bytes"])
    added = {part: parts[part] - before[part] for part in parts}
    for part, size in added.items():
        slack = SLACK if part != "own" else 20 * MB  # Fathom's tables are as large as what they know
        assert abs(size - expected.get(part, 0)) <= slack + expected.get(part, 0) // 20, (part, added)
    assert abs(parts["rest"]) <= max(MB, last["resident_bytes"] // 100)
    assert sum(last["parts"].values()) == last["resident_bytes"]


@pytest.mark.parametrize("library", ["_ctypes", "_decimal"])
@pytest.mark.parametrize("blocks", ["bytearray(100_000_000)", "[bytearray(200_000) for _ in range(500)]"],
                         ids=["one", "many"])
def test_blocks_right_behind_a_library(python, tmp_path, blocks, library):
    """A library that is loaded later lies below them, without a gap: they are no data of its."""
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(f"import os, time\nx = {blocks}\nimport {library}\nchild = os.fork()\n"
                      "y = bytearray(1_000_000)\ntime.sleep(0.6)\n"
                      "if child: os.waitpid(child, 0)\nos._exit(0)\n")
    done = launch.run(script, python=python, output=output, collectors=("--memory",))
    assert done.returncode == 0, done.stderr
    rows = [row for row in recordings.report(output, "--memory=resident")["residents"] if row["when"] == "last"]
    assert len(rows) == 2  # the child's, too
    for parts in (row["parts"] for row in rows):
        assert 0 <= parts["python"] - 100 * MB < 10 * MB  # there is the interpreter, too
        assert parts["files"] < 30 * MB and parts["malloc"] < 5 * MB and abs(parts["rest"]) < MB, parts


def test_who_reserved_it(tmp_path):
    """A library with an allocator of its own: what it reserved, and what of that is in memory."""
    source, library = tmp_path / "pool.c", tmp_path / "libpool.so"
    source.write_text(textwrap.dedent("""
        #define _GNU_SOURCE
        #include <string.h>
        #include <sys/mman.h>
        char *pool_take(size_t reserve, size_t use)
        {
            char *p = mmap(0, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            return memset(p, 1, use);
        }
    """))
    subprocess.run([*launch.COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    code = (f"pool = ctypes.CDLL({str(library)!r})\npool.pool_take.argtypes = [ctypes.c_size_t] * 2\n"
            "pool.pool_take(512 << 20, 20 << 20)\npool.pool_take(64 << 20, 1 << 20)")
    last, report = account(tmp_path, launch.sys.executable, code)
    row, = [row for row in last["reserved_by"] if row["library"] == str(library)]
    assert row == {"library": str(library), "reserved_bytes": 576 << 20, "resident_bytes": 21 << 20}
    text = launch.fathom("report", "--memory=resident", tmp_path / "out.fathom").stdout
    assert "reserved by libpool.so: 576 MiB, of which 21.0 MiB are resident" in text
    # It is not what lines allocated.
    assert report["memory"]["peak_bytes"] < 100 * MB


def test_children_each_have_one(python, tmp_path):
    code = """
x = bytearray(50_000_000)
child = os.fork()
y = bytearray(30_000_000 if child else 10_000_000)
time.sleep(0.6)
if child: os.waitpid(child, 0)
os._exit(0)
"""
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(START + code)
    done = launch.run(script, python=python, output=output, collectors=("--memory",))
    assert done.returncode == 0, done.stderr
    report = recordings.report(output, "--memory=resident")
    sizes = sorted(row["parts"]["python"] for row in report["residents"] if row["when"] == "last")
    assert len(sizes) == 2
    assert sizes[0] == pytest.approx(60 * MB, abs=20 * MB) and sizes[1] - sizes[0] == pytest.approx(20 * MB, abs=SLACK)
    for row in report["residents"]:
        assert abs(row["parts"]["rest"]) < 2 * MB, row


def test_as_text_and_as_a_table(tmp_path):
    account(tmp_path, launch.sys.executable, PROGRAMS["mapping"][0])
    output = tmp_path / "out.fathom"
    text = launch.fathom("report", "--memory=resident", output).stdout
    assert "143 MiB more were allocated and never touched, or are swapped out" in text
    assert "alive: mappings" in text and "not explained" in text
    rows = list(csv.DictReader(io.StringIO(launch.fathom("report", "--memory=resident", "--csv", output).stdout)))
    parts = {(row["when"], row["part"]): int(row["bytes"]) for row in rows}
    assert parts["highest", "resident"] == sum(size for (when, part), size in parts.items()
                                               if when == "highest" and part not in ("resident", "untouched"))


def test_where_nobody_looked(tmp_path):
    output = tmp_path / "out.fathom"
    launch.run("-c", "pass", output=output, collectors=("--calls",))
    done = launch.fathom("report", "--memory=resident", output)
    assert done.returncode == 12


def test_where_the_store_is_on_disk(tmp_path):
    """Its second file tells the ranges."""
    output = tmp_path / "out.fathom"
    script = tmp_path / "app.py"
    script.write_text(START + "x = bytearray(100_000_000)" + STAY)
    done = groups.run(1 << 30, launch.FATHOM, "run", "--memory", "-q", "-o", output, script)
    assert done.returncode == 0, done.stderr
    last = recordings.report(output, "--memory=resident")["residents"][-1]
    assert last["parts"]["python"] > 100 * MB and abs(last["parts"]["rest"]) < 2 * MB


@pytest.mark.parametrize("memory", ["--memory", "--memory=malloc", "--memory=sampled:16384"])
def test_a_thread_whose_first_allocation_is_inside_of_the_c_library(tmp_path, memory):
    """pthread_getattr_np() allocates while it has the lock of the thread: what we ask about a stack must not need that."""
    source, library = tmp_path / "early.c", tmp_path / "libearly.so"
    source.write_text(textwrap.dedent("""
        #define _GNU_SOURCE
        #include <pthread.h>
        static void *ask(void *unused)
        {
            pthread_attr_t attributes;
            if (pthread_getattr_np(pthread_self(), &attributes) == 0)
                pthread_attr_destroy(&attributes);
            return unused;
        }
        int early(void)
        {
            pthread_t thread;
            return pthread_create(&thread, 0, ask, 0) || pthread_join(thread, 0);
        }
    """))
    subprocess.run([*launch.COMPILER, "-shared", "-fPIC", "-o", library, source, "-pthread"], check=True)
    done = launch.run("-c", f"import ctypes; lib = ctypes.CDLL({str(library)!r}); print([lib.early() for _ in range(200)] == [0] * 200)",
                      output=tmp_path / "o.fathom", collectors=(memory,))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
