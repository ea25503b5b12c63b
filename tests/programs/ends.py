"""Ends in the way named by its first argument."""
import ctypes
import os
import signal
import sys
import time


def work():
    return sum(range(1000))


def caught(number, frame):
    print("caught", signal.Signals(number).name, flush=True)
    sys.exit(20)


def wait_for(*numbers):
    for number in numbers:
        signal.signal(number, caught)
    ready()


def ready():
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.05)


WAYS = {
    "normally": lambda: None,
    "exit7": lambda: sys.exit(7),
    "exit_text": lambda: sys.exit("a sentence"),
    "_exit3": lambda: os._exit(3),
    "exception": lambda: 1 / 0,
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sighup": lambda: os.kill(os.getpid(), signal.SIGHUP),
    "pipe": lambda: (signal.signal(signal.SIGPIPE, signal.SIG_DFL),
                     os.kill(os.getpid(), signal.SIGPIPE)),
    "catches": lambda: wait_for(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2,
                                signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT),
    "waits": ready,
}

if __name__ == "__main__":
    work()
    WAYS[sys.argv[1]]()
