"""A process and its child; each calls work() 3 times, which calls leaf() 1000 times and turn() once."""
import os
import sys
import time


def leaf():
    pass


def turn():
    end, used = time.monotonic() + 0.15, time.process_time() + 0.05
    while time.monotonic() < end or time.process_time() < used:
        pass


def work():
    for _ in range(1000):
        leaf()
    turn()


def main():
    child = os.fork()
    for _ in range(3):
        work()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)


main()
