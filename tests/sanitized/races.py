"""Everything at once: profiles come and go, threads come and go, and others fork without the GIL."""
import ctypes
import sys
import threading

import fathom

forks = ctypes.CDLL(sys.argv[1])  # lets go of the GIL
ROUNDS = 30


def leaf(n):
    return n + 1


def numbers(n):
    for i in range(n):
        yield leaf(i)


def work():
    return sum(numbers(20))


def fork_without_the_gil(done):
    while not done.is_set():
        assert forks.fork_and_wait() == 0


def start_threads(done):
    while not done.is_set():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def profile_again_and_again():
    for i in range(ROUNDS):
        profile = fathom.Profile(builtins=i % 2 == 0)
        profile.enable()
        work()
        profile.clear()
        assert work() == 210
        profile.disable()
        lines = fathom.LineProfiler(work, numbers)
        lines.enable()
        work()
        lines.disable()


def for_ever():
    while True:
        work()


done = threading.Event()
others = [threading.Thread(target=target, args=(done,))
          for target in (fork_without_the_gil, fork_without_the_gil, start_threads)]
for thread in others:
    thread.start()
profile_again_and_again()
done.set()
for thread in others:
    thread.join()
print("done", flush=True)
threading.Thread(target=for_ever, daemon=True).start()  # which the end finds in the middle of a call
