"""The collector of `fathom run --memory` (src/target/heap), by programs whose blocks are known."""

import os
import re
import subprocess
import textwrap

import pytest

import heap_stores
import pythons
from heap_stores import C, PYTHON
from launch import program, run

KNOWN = program("memory_known.py")
MARKS = {match[1]: number for number, line in enumerate(open(KNOWN), 1)
         if (match := re.search(r"  # ([a-z_ ]+)$", line))}
PAGE = os.sysconf("SC_PAGESIZE")
HEADER = 33  # of a bytes object, with the byte behind it


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The store of the known program by interpreter and mode; each is run once."""
    stores = {}

    def call(python, mode="all"):
        if (python, mode) not in stores:
            folder = tmp_path_factory.mktemp("heap")
            _, (stores[python, mode],) = heap_stores.record(folder, python, KNOWN, mode=mode)
        return stores[python, mode]

    return call


@pytest.fixture
def record(python, tmp_path):
    """Run code; its stores."""

    def call(code, *words, **options):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        return heap_stores.record(tmp_path / "run", python, script, *words, **options)[1]

    return call


# Blocks, bytes of each, and what is alive of them when the heap is highest, and at the end.
OF_PYTHON = {
    "kept": (10, 1000, 10, 10),
    "at once": (7, 2000, 0, 0),
    "replaced": (9, 2500, 0, 0),
    "generator": (5, 3000, 5, 5),
    "raising": (1, 3100, 1, 1),
    "handler": (1, 4000, 1, 1),
    "thread": (12, 5000, 12, 12),
    "task": (12, 6000, 12, 12),
    "deep": (30, 8000, 30, 30),
    "peak": (1, 60_000_000, 1, 0),
    "after": (1, 9000, 0, 1),
}


@pytest.mark.parametrize("mark", OF_PYTHON)
def test_blocks_of_python(python, known, mark):
    blocks, each, at_peak, at_end = OF_PYTHON[mark]
    row = known(python).at_lines("memory_known.py", PYTHON)[MARKS[mark]]
    each += HEADER
    assert (row.allocated, row.blocks) == (blocks * each, blocks)
    assert (row.peak, row.peak_blocks) == (at_peak * each, at_peak)
    assert (row.live, row.live_blocks) == (at_end * each, at_end)


# Blocks, all bytes of them, and of what is alive at the end.
OF_C = {
    "malloc": (1, 8001, 0),
    "calloc": (1, 3003, 3003),
    "realloc": (4, 2000 + 3000 + 4000 + 5000, 0),
    "posix_memalign": (2, 2 * 641, 2 * 641),
    "aligned_alloc": (2, 2 * 640, 2 * 640),
    "memalign": (2, 2 * 643, 2 * 643),
    "valloc": (2, 2 * 644, 2 * 644),
    "pvalloc": (2, 2 * PAGE, 2 * PAGE),
    "mmap": (3, 60 * PAGE, 17 * PAGE),
    "mremap": (1, 40 * PAGE, 40 * PAGE),
}


@pytest.mark.parametrize("mode", ["all", "malloc"])
@pytest.mark.parametrize("mark", OF_C)
def test_blocks_of_c(python, known, mark, mode):
    blocks, allocated, at_end = OF_C[mark]
    row = known(python, mode).at_lines("memory_known.py", C)[MARKS[mark]]
    assert (row.blocks, row.allocated, row.live) == (blocks, allocated, at_end)
    assert row.peak == row.live


def test_a_temporary_ends_before_the_second_block_after_it(python, known):
    lines = known(python).at_lines("memory_known.py", PYTHON)
    row = lines[MARKS["at once"]]
    assert (row.temporary, row.temporary_blocks) == (7 * 2033, 7)
    row = lines[MARKS["replaced"]]  # each but the last ends when the next is there
    assert row.temporary_blocks in (8, 9)
    assert lines[MARKS["kept"]].temporary_blocks == 0


def test_recursion_has_a_context_for_each_depth(python, known):
    line = MARKS["recursion"]
    found = {len(row.stack): (row.allocated, row.blocks) for row in known(python).rows
             if row.stack and row.stack[-1][1:] == ("recursion", line) and row.world == PYTHON}
    assert found == {2 + depth: (100 + 30 - depth + HEADER, 1) for depth in range(31)}


def test_a_generator_is_called_by_who_consumes_it(python, known):
    stacks = {row.stack for row in known(python).rows if row.stack and row.blocks
              and row.stack[-1][1:] == ("generator", MARKS["generator"])}
    assert [[frame[1] for frame in stack] for stack in stacks] == [["<module>", "consume",
                                                                   "generator"]]
    assert {stack[1][2] for stack in stacks} == {MARKS["consumer"]}


def test_a_deep_stack_is_whole(python, known):
    (row,) = [row for row in known(python).rows if row.stack and row.world == PYTHON
              and row.stack[-1][1:] == ("deep", MARKS["deep"])]
    assert len(row.stack) == 402
    assert {frame[1:] for frame in row.stack[1:-1]} == {("deep", MARKS["deep caller"])}


def test_threads_have_their_own_contexts(python, known):
    rows = [row for row in known(python).rows if row.stack and row.world == PYTHON
            and row.stack[-1][1:] == ("in_thread", MARKS["thread"])]
    assert sorted(row.allocated for row in rows) == [4 * 5033] * 3
    assert len({row.thread for row in rows}) == 3
    assert all(row.stack[0][1].endswith("_bootstrap") for row in rows)


def test_code_that_is_made_again_and_again_is_one(python, known):
    rows = [row for row in known(python).rows if row.stack and row.blocks and row.world == PYTHON
            and row.stack[-1][0] == "<made>"]
    assert len(rows) <= 2  # on 3.11 an instruction that was specialised calls from elsewhere
    assert {(row.stack[-1][2], row.stack[-2][1:]) for row in rows} == {
        (2, ("made_code", MARKS["exec"]))}
    assert sum(row.allocated for row in rows) == 20 * 7033
    assert sum(row.blocks for row in rows) == sum(row.live_blocks for row in rows) == 20


@pytest.mark.parametrize("mode", ["all", "malloc"])
def test_sums_agree(python, known, mode):
    store = known(python, mode)
    assert sum(row.peak for row in store.rows) == store.peak
    assert sum(row.live for row in store.rows) == store.live
    assert sum(row.live_blocks for row in store.rows) == store.live_blocks
    assert sum(row.blocks for row in store.rows) == sum(store.sizes) == sum(
        blocks for blocks, _ in store.kinds.values())
    assert sum(row.allocated for row in store.rows) == sum(size for _, size in store.kinds.values())
    assert store.lost == (0, 0, 0, 0)


def test_without_python_its_arenas_are_counted(python, known):
    store = known(python, "malloc")
    assert all(row.world == C for row in store.rows if row.blocks)
    assert store.kinds["object"] == store.kinds["memory"] == (0, 0)
    assert store.kinds["mmap"][1] >= 1 << 20


C_THREAD = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *unused)
{
    for (int i = 0; i < 1000; i++)
        free(malloc(100));
    return malloc(12345);
}
void *in_threads(int count)
{
    pthread_t threads[64];
    void *last = NULL;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], &last);
    return last;
}
"""


@pytest.fixture(scope="session")
def c_threads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    (folder / "threads.c").write_text(C_THREAD)
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", folder / "threads.c", "-o",
                    folder / "threads.so", "-lpthread"], check=True)
    return str(folder / "threads.so")


def test_threads_of_c_count_at_once(record, c_threads):
    (store,) = record("""
        import ctypes, os, sys
        ctypes.CDLL(sys.argv[1]).in_threads(8)
        os._exit(0)""", c_threads)
    rows = [row for row in store.rows if not row.stack and row.allocated >= 12345 + 100_000
            and row.blocks >= 1001 and row.thread != 0xffffffff and row.world == C]
    of_threads = [row for row in rows if row.blocks < 1100]
    assert len(of_threads) == 8
    assert sum(row.live for row in of_threads) % 12345 < 8 * 1000
    assert sum(row.live for row in store.rows) == store.live


# What a child does after os.fork, and how it ends.
ENDINGS = {
    "returns": "sys.exit(0)",
    "leaves at once": "os._exit(0)",
    "is killed": "os.kill(os.getpid(), 9)",
    "executes": "os.execv(sys.executable, [sys.executable, '-c', 'x = bytes(3210)'])",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_forked_child_has_a_store_of_its_own(record, ending):
    stores = record(f"""
        import os, sys; one = b"1"
        kept = [one * 1111 for _ in range(10)]
        def in_child():
            mine = [None] * 6
            for i in range(6):
                mine[i] = one * 2222
            del kept[:4]
            return mine
        if os.fork() == 0:
            mine = in_child()
            {ENDINGS[ending]}
        os.wait()
        os._exit(0)""")
    parent, child, *executed = stores
    assert (child.parent, child.flags & 2) == (parent.pid, 2)
    assert 7 not in parent.at_lines("program.py", PYTHON)
    in_child = child.at_lines("program.py", PYTHON)[7]
    assert (in_child.allocated, in_child.blocks) == (6 * (2222 + HEADER), 6)
    inherited = [row for row in child.rows if not row.stack and row.thread == 0xffffffff]
    assert sum(row.live for row in child.rows) == child.live
    assert sum(row.peak for row in child.rows) == child.peak
    if ending == "is killed":
        assert in_child.live_blocks == 6
    assert inherited and min(row.live for row in inherited) >= 0
    assert [store.pid for store in executed] == ([child.pid] if ending == "executes" else [])
    assert [row for row in parent.rows if row.stack and row.allocated == 10 * (1111 + HEADER)
            and row.live_blocks == 10]


def test_a_spawned_child_and_a_program_that_is_none_of_ours(record):
    stores = record("""
        import multiprocessing, subprocess; one = b"1"
        def work():
            global kept
            kept = one * 4321
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=work)
            process.start()
            process.join()
            subprocess.run(["true"])""")
    found = [store for store in stores
             if any(row.allocated == 4321 + HEADER and row.stack and row.stack[-1][1] == "work"
                    for row in store.rows)]
    assert len(found) == 1 and found[0].pid != stores[0].pid


def test_interpreters_with_their_own_gil(record):
    (store,) = record("""
        import os, sys, threading
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        code = "kept = {}\\nfor i in range(20000): kept[i % 500] = (i, [i], str(i), bytes(600))"
        def work():
            number = interpreters.create()
            getattr(interpreters, "exec", None) and interpreters.exec(number, code) or \\
                hasattr(interpreters, "exec") or interpreters.run_string(number, code)
            interpreters.destroy(number)
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        os._exit(0)""")
    rows = [row for row in store.rows if row.stack and row.world == PYTHON
            and row.stack[-1][0] in ("<string>", "<script>") and row.blocks >= 20_000]
    assert sum(row.allocated for row in rows) >= 4 * 20_000 * 633
    assert sum(row.live for row in store.rows) == store.live
    assert sum(row.peak for row in store.rows) == store.peak


def test_a_daemon_thread_that_allocates_while_the_interpreter_ends(record, c_threads, tmp_path):
    """Its frames are freed under it, and filled with other bytes."""
    (tmp_path / "churn.c").write_text("#include <stdlib.h>\nvoid churn(long n)\n{\n"
                                      "    for (long i = 0; !n || i < n; i++)\n"
                                      "        free(malloc(100));\n}\n")
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", tmp_path / "churn.c", "-o",
                    tmp_path / "churn.so"], check=True)
    (store,) = record("""
        import ctypes, sys, threading
        churn = ctypes.CDLL(sys.argv[1]).churn
        started = threading.Event()
        def deep(n):
            if n:
                return deep(n - 1)
            started.set()
            churn(0)
        threading.Thread(target=deep, args=(50,), daemon=True).start()
        started.wait()
        class Last:
            def __del__(self, churn=ctypes.PyDLL(sys.argv[1]).churn):
                churn(300000)
        sys.last = Last()""", tmp_path / "churn.so", MALLOC_PERTURB_="165",
                      GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
    assert store.flags & 4, "it ended as it should"


def test_more_threads_at_once_than_records_are_kept_for(record):
    (store,) = record("""
        import os, threading
        threading.stack_size(65536)
        barrier, one = threading.Barrier(1201), b"1"
        kept = [None] * 1200
        def work(i):
            barrier.wait()
            kept[i] = one * 2345
            barrier.wait()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(1200)]
        [thread.start() for thread in threads]
        barrier.wait()
        barrier.wait()
        [thread.join() for thread in threads]
        os._exit(0)""")
    row = store.at_lines("program.py", PYTHON)[8]
    assert (row.live, row.live_blocks) == (1200 * (2345 + HEADER), 1200)
    assert store.lost == (0, 0, 0, 0)


def test_blocks_that_end_behind_our_back_do_not_stay(record):
    """Somebody takes the hooks away, frees, and puts them back: what gets those addresses later has
    ended what was there."""
    (store,) = record("""
        import ctypes, os
        class Allocator(ctypes.Structure):
            _fields_ = [(name, ctypes.c_void_p) for name in "ctx malloc calloc realloc free".split()]
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.dlsym.restype = ctypes.c_void_p
        libc.dlopen.restype = ctypes.c_void_p
        real_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            libc.dlsym(ctypes.c_void_p(libc.dlopen(b"libc.so.6", 1)), b"free"))
        def unseen():
            for _ in range(1000):
                real_free(libc.malloc(300_000))
        unseen()
        os._exit(0)""")
    row = store.at_lines("program.py", C)[13]
    assert row.blocks == 1000 and row.live_blocks <= 2


@pytest.mark.parametrize("way", ["debug", "malloc", "malloc_debug", "pymalloc"])
def test_other_allocators_of_python(record, way):
    (store,) = record("""
        import os; one = b"1"
        kept = [None] * 50
        def work():
            for i in range(50):
                kept[i] = one * 400
        work()
        os._exit(0)""", PYTHONMALLOC=way)
    row = store.at_lines("program.py", PYTHON)[6]
    assert (row.allocated, row.blocks, row.live_blocks) == (50 * 433, 50, 50)


def test_tracemalloc_counts_the_same(record):
    (store,) = record("""
        import os, tracemalloc; one = b"1"
        kept = [None] * 50
        def work():
            for i in range(50):
                kept[i] = one * 400
        tracemalloc.start()
        work()
        stat = [s for s in tracemalloc.take_snapshot().statistics("lineno")
                if s.traceback[0].lineno == 6][0]
        assert (stat.size, stat.count) == (50 * 433, 50), stat
        tracemalloc.stop()
        work()
        os._exit(0)""")
    row = store.at_lines("program.py", PYTHON)[6]
    assert (row.allocated, row.blocks, row.live_blocks) == (100 * 433, 100, 50)


def test_statistics_of_pools_are_silent(python, tmp_path):
    """CPython has them for its own allocator alone, and finds another in its place; free lists are said as ever."""
    code = "import sys; sys._debugmallocstats(); print('end')"
    plain = subprocess.run([python, "-c", code], capture_output=True, text=True)
    done = run("-c", code, python=python, output=tmp_path / "o.fathom", collectors=("--memory",))
    assert (done.returncode, done.stdout) == (0, "end\n") and "Small block threshold" in plain.stderr
    assert "Small block threshold" not in done.stderr and "free PyDictObjects" in done.stderr


def test_numpy_data_is_the_askers(tmp_path):
    found = [path for path in pythons.interpreters().values()
             if subprocess.run([path, "-c", "import numpy"], capture_output=True).returncode == 0]
    if not found:
        pytest.skip("no Python here has numpy")
    script = tmp_path / "program.py"
    script.write_text("import os\nimport numpy\ndef make():\n    return numpy.ones(1_000_000)\n"
                      "kept = make()\nos._exit(0)\n")
    _, (store,) = heap_stores.record(tmp_path / "run", found[0], script)
    rows = [row for row in store.rows if any(frame[1:] == ("make", 4) for frame in row.stack)]
    assert sum(row.live for row in rows) >= 8_000_000
