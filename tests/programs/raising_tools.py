"""Trace and profile functions of the program's own that raise at each kind of event; what was called goes on after it."""
import sys


class Quit(Exception):
    pass


def returns():
    return 3


def raises():
    raise KeyError


def catches():
    try:
        return returns()
    except Quit:
        return 4


def generates():
    yield 1
    yield 2


def recurses(n=2):
    return recurses(n - 1) if n else raises()


def calls_c():
    return len("abc") + int("x")


def after():
    return 5


def trial(install, function, refused):
    def tool(frame, event, arg):
        if event == refused and frame.f_code is function.__code__:
            raise Quit
        return tool

    install(tool)
    try:
        for _ in function() if function is generates else [function()]:
            pass
    except (Quit, KeyError, ValueError):
        pass
    finally:
        install(None)
    after()


for function in returns, raises, catches, generates, recurses, calls_c:
    for event in "call", "line", "return", "exception":
        trial(sys.settrace, function, event)
    for event in "call", "return", "c_call", "c_return", "c_exception":
        trial(sys.setprofile, function, event)
