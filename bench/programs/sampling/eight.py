"""Eight threads that are busy for so many seconds, each with work of its own: eight.py SECONDS"""

import sys
import threading
import time


def leaf(n):
    return sum(i * i for i in range(n))


def branch(kind, depth):
    if depth:
        return branch(kind, depth - 1) + leaf(20 * kind)
    return leaf(50)


def text(kind):
    return " ".join(str(i) for i in range(30 * kind)).split()


def work(kind, until):
    while time.monotonic() < until:
        for depth in range(kind, kind + 20):
            branch(kind, depth)
        text(kind)


def main():
    until = time.monotonic() + float(sys.argv[1])
    threads = [threading.Thread(target=work, args=(kind, until)) for kind in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
