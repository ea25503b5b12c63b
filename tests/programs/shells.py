"""What C code can see of popen(), pclose() and fclose(): one line per observation."""
import ctypes
import errno
import os
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.popen.restype = ctypes.c_void_p
libc.popen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
for function in (libc.pclose, libc.fclose, libc.fileno):
    function.argtypes = [ctypes.c_void_p]
libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
libc.getenv.restype = ctypes.c_char_p
preloaded = libc.getenv(b"LD_PRELOAD")


def read(stream):
    data = b""
    while piece := os.read(libc.fileno(stream), 4096):
        data += piece
    return data.decode()


def observe():
    stream = libc.popen(b"echo $0 $#; exit 3", b"r")
    print("read", read(stream), libc.pclose(stream))
    stream = libc.popen(b"kill -TERM $$", b"r")
    print("killed", libc.pclose(stream))
    stream = libc.popen(b"read line; echo got $line; exit 4", b"w")
    libc.fputs(b"a line\n", stream)
    print("written", libc.fclose(stream))
    for mode in (b"", b"rw", b"x", b"re", b"er", b"we"):
        ctypes.set_errno(0)
        stream = libc.popen(b"true", mode)
        print("mode", mode, bool(stream), errno.errorcode.get(ctypes.get_errno(), 0) if not stream
              else (os.get_inheritable(libc.fileno(stream)), libc.pclose(stream)))
    print("missing", libc.pclose(libc.popen(b"/no/such/program 2> /dev/null", b"r")))
    # POSIX: streams of earlier calls are not open in later shells.
    first = libc.popen(b"sleep 0; cat", b"w")
    second = libc.popen(b"[ -e /proc/self/fd/%d ]" % libc.fileno(first), b"r")
    print("earlier", libc.pclose(second), libc.pclose(first))
    # A descriptor that the program closed by itself, and one that it used for something else.
    stream = libc.popen(b"cat > /dev/null", b"w")
    fd = libc.fileno(stream)
    os.close(fd)
    print("closed", libc.pclose(stream))
    os.wait()
    stream = libc.popen(b"cat > /dev/null", b"w")
    fd = libc.fileno(stream)
    other = os.open("/dev/null", os.O_RDONLY)
    os.dup2(other, fd)
    print("replaced", libc.pclose(libc.popen(b"[ -e /proc/self/fd/%d ]" % fd, b"r")) in (0, 256))
    os.dup2(other, fd, inheritable=True)
    print(libc.pclose(stream))
    # The shell's end of the pipe gets the very number that the shell wants it at.
    sys.stdout.flush()
    kept = os.dup(1)
    os.close(1)
    stream = libc.popen(b"echo from the shell", b"r")
    text = read(stream)
    status = libc.pclose(stream)
    os.dup2(kept, 1)
    print("without stdout", text, status)
    pid = os.fork()
    if pid == 0:
        stream = libc.popen(b"exit 5", b"r")
        print("in a child", libc.pclose(stream), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    print("no zombies", end=" ")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("left")


def look(done):
    while not done.is_set():
        assert libc.getenv(b"NO_SUCH_VARIABLE") is None
        assert libc.getenv(b"LD_PRELOAD") == preloaded


def start():
    for _ in range(60):
        stream = libc.popen(b"exit 3", b"r")
        assert libc.pclose(stream) == 3 << 8


def among_threads():
    done = threading.Event()
    lookers = [threading.Thread(target=look, args=(done,)) for _ in range(3)]
    starters = [threading.Thread(target=start) for _ in range(2)]
    for thread in lookers + starters:
        thread.start()
    for thread in starters:
        thread.join()
    done.set()
    for thread in lookers:
        thread.join()
    print("all went well")


{"observe": observe, "threads": among_threads}[sys.argv[1]]()
