"""What programs do to memory that a profiler must live with, one way at a time: memory_hostile.py WAY LIBRARY [PROGRAM].
Whatever it is, what is printed and the status are the same each time, and so is one line's memory."""
import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading

BLOCKS, BYTES = 40, 50_000
one = b"1"
kept = [None] * BLOCKS


def known():
    for i in range(BLOCKS):
        kept[i] = one * BYTES  # known


def library(mode=ctypes.DEFAULT_MODE):
    return ctypes.CDLL(sys.argv[2], mode=mode)


def vfork():
    lib = library()
    print([lib.by_vfork() for _ in range(5)], [lib.by_vfork_without_exec() for _ in range(5)])


def spawn():
    pids = [os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {i}"], os.environ) for i in range(5)]
    print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
    print([subprocess.run(["sh", "-c", f"exit {i}"], close_fds=close).returncode
           for i in range(3) for close in (True, False)])


def clone():
    print([library().by_system_call(count) for count in (0, 1, 5000)])  # clone


def static():
    print(subprocess.run([sys.argv[3]], capture_output=True))


def deepbind():
    """Blocks of one world that end in the other."""
    lib, libc = library(os.RTLD_DEEPBIND | os.RTLD_NOW), ctypes.CDLL(None)
    lib.make.restype = libc.malloc.restype = ctypes.c_void_p
    lib.make.argtypes = libc.malloc.argtypes = [ctypes.c_size_t]
    lib.end.argtypes = libc.free.argtypes = [ctypes.c_void_p]
    for i in range(2000):
        libc.free(lib.make(100 + i))
        lib.end(libc.malloc(100 + i))


def forks_among_threads():
    print(library().fork_among_threads(40))


def python_forks_among_threads():
    over = []

    def allocate():
        while not over:
            {i: bytearray(700) for i in range(50)}

    threads = [threading.Thread(target=allocate) for _ in range(4)]
    for thread in threads:
        thread.start()
    statuses = []
    for i in range(12):
        pid = os.fork()
        if pid == 0:
            mine = [bytearray(i + j) for j in range(3000)]
            os._exit(len(mine) % 100 + i)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    over.append(True)
    for thread in threads:
        thread.join()
    print(statuses)


def thread_ends():
    print(library().threads_that_end(50))


def signals():
    print(library().signals_among_allocations(200))


def python_signals():
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append([bytearray(900) for _ in range(20)]))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    while len(seen) < 100:
        {i: str(i) for i in range(100)}
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(len(seen) >= 100)


def at_exit():
    library().allocate_at_exit()
    atexit.register(lambda: print("the end of Python", len([bytearray(900) for _ in range(300)]), flush=True))

    class Late:
        def __del__(self, bytearray=bytearray):
            bytearray(12345)

    sys.late = Late()


def other_allocator():
    """In front of what is there, and away again; what was made meanwhile ends afterwards."""
    lib = library()
    lib.unwrap_allocator.restype = ctypes.c_long
    lib.wrap_allocator(2)
    made = [object() for _ in range(5000)]
    print(lib.unwrap_allocator(2) >= 5000, len(made))


def tracemalloc():
    import tracemalloc
    for _ in range(5):
        tracemalloc.start(3)
        made = [bytearray(300) for _ in range(1000)]
        print(tracemalloc.get_traced_memory()[0] >= 1000 * 300)
        tracemalloc.stop()
        del made


def limits():
    """Of a program that must not have more: it is told, and goes on."""
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for _ in range(20):
        try:
            bytearray(1 << 31)
        except MemoryError:
            print("no memory")


def contexts():
    """More of them than there is room for at first: a binary tree of calls, each of which keeps a block."""
    space = {"made": [], "one": one}
    exec("".join(f"def f{i}(d):\n  made.append(one * 1000)\n  if d: f{(i * 7 + 1) % 97}(d - 1); f{(i * 3 + 2) % 97}(d - 1)\n"
                 for i in range(97)), space)
    space["f0"](17)
    pid = os.fork()
    if pid == 0:
        space["f1"](3)
        os._exit(0)
    os.waitpid(pid, 0)
    print(len(space["made"]))


def nothing():
    pass


def double_free():
    known()
    library().free_twice()


def wrong_free():
    known()
    library().free_what_was_never_given()


globals()[sys.argv[1]]()
known()
print("known", sum(map(len, kept)))
sys.stdout.flush()
if sys.argv[1] != "at_exit":
    os._exit(6)
sys.exit(6)
