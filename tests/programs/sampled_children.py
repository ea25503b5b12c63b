"""Starts children in every way, all at once: sampled_children.py LOG OTHER_PYTHON

Each writes "way pid parent" to the log when it begins, and works in a function named after the way
until its parent lets it go on. Exits with 7.
"""
import multiprocessing
import os
import subprocess
import sys
import time

LOG = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
OTHER = sys.argv[2] if len(sys.argv) > 2 else sys.executable
SECONDS = 1.0


def note(way, log=None):
    with open(log or LOG, "a") as file:
        file.write("%s %d %d\n" % (way, os.getpid(), os.getppid()))


def work(seconds=SECONDS):
    """So long and, where the machine is busy, until a third of that was spent on a processor."""
    end, used = time.monotonic() + seconds, time.process_time() + seconds / 3
    while time.monotonic() < end or time.process_time() < used:
        sum(range(1000))


def child_fork():
    note("fork")
    work()


def child_double_fork():
    note("double_fork")
    work()


def child_spawn(log):
    note("spawn", log)
    work()


def child_forkserver(log):
    note("forkserver", log)
    work()


SCRIPT = """
import os, sys, time
def child_%(way)s():
    with open(sys.argv[1], "a") as file:
        file.write("%(way)s %%d %%d\\n" %% (os.getpid(), os.getppid()))
    end = time.monotonic() + %(seconds)s
    while time.monotonic() < end or time.process_time() < %(seconds)s / 3:
        sum(range(1000))
child_%(way)s()
"""


def script(way):
    return SCRIPT % {"way": way, "seconds": SECONDS}


def forked(call):
    pid = os.fork()
    if pid == 0:
        try:
            call()
        finally:
            os._exit(0)
    return pid


def fork_again():
    if os.fork() == 0:
        child_double_fork()
        os._exit(0)


def before_exec():
    note("before_exec")
    work(0.6)
    os.execv(OTHER, [OTHER, "-c", script("exec"), LOG])


def main():
    note("main")
    spawn = multiprocessing.get_context("spawn").Process(target=child_spawn, args=(LOG,))
    server = multiprocessing.get_context("forkserver").Process(target=child_forkserver, args=(LOG,))
    pids = [forked(child_fork), forked(fork_again), forked(before_exec)]
    shell = subprocess.Popen("echo in the shell; '%s' -c '%s' '%s'; true" % (
        sys.executable, script("shell").replace("'", "'\\''"), LOG), shell=True,
        stdout=subprocess.DEVNULL)
    spawn.start()
    server.start()
    spawn.join()
    server.join()
    shell.wait()
    for pid in pids:
        os.waitpid(pid, 0)
    while len([line for line in open(LOG)]) < 8:
        time.sleep(0.05)
    work(0.2)
    print("all done")
    sys.stdout.flush()
    sys.exit(7)


if __name__ == "__main__":
    main()
