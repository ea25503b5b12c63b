"""Trace functions of a program's own, set in several ways; prints every event that they are told of."""
import json
import sys
import textwrap
import threading


def heard(frame, event, arg):
    seen.append(f"{frame.f_code.co_name} {event} {frame.f_lineno}")
    return heard


def generates(n):
    for i in range(n):
        yield i


def raises():
    try:
        raise ValueError
    finally:
        len("x")


def work():
    list(generates(3))
    generator = generates(5)
    next(generator)
    try:
        generator.throw(KeyError)
    except KeyError:
        pass
    try:
        raises()
    except ValueError:
        pass
    json.loads('{"a": [1, 2, {"b": 3}]}')
    textwrap.wrap("a b c d e f g " * 20, 30)
    [n for n in range(3)
     if n]
    return sorted([3, 1, 2], key=lambda n:
                  -n)


def inside():
    sys.settrace(heard)
    sys._getframe().f_trace = heard
    a = 1
    work()
    sys.settrace(None)
    return a


seen = []
for _ in range(3):
    sys.settrace(heard)
    work()
    sys.settrace(None)
    work()
inside()
threading.settrace(heard)
thread = threading.Thread(target=work)
thread.start()
thread.join()
threading.settrace(None)
print(*seen, sep="\n")
