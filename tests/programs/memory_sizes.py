"""Allocates what can be worked out by hand: a bytearray of n bytes has sys.getsizeof(bytearray(n)), in
two blocks. Prints these sizes, and ends at once, so that what it keeps is what is alive at its end."""

import json
import os
import sys
import threading


def block():
    return bytearray(1000)


def keep():
    return [block() for i in range(100)]


def waste():
    for i in range(500):
        block()


def nested(depth):
    own = bytearray(20000)
    if depth:
        nested(depth - 1)
    else:
        large = bytearray(5000000)


def work():
    here = bytearray(300000)
    ready.set()
    done.wait()


def child():
    more = bytearray(300000)
    os._exit(0)


sizes = {str(n): sys.getsizeof(bytearray(n)) for n in (0, 1000, 20000, 300000, 5000000)}
print(json.dumps(sizes), flush=True)
ready, done = threading.Event(), threading.Event()
thread = threading.Thread(target=work)
thread.start()
ready.wait()
kept = keep()
waste()
nested(4)
if "fork" in sys.argv:
    pid = os.fork()
    if pid == 0:
        child()
    os.waitpid(pid, 0)
os._exit(0)
