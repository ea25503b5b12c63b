"""For programs that stop until they are told to go on, so that they can be read from outside."""

import ctypes
import os
import sys


def wait(*words):
    print(*words, flush=True)
    return os.read(0, 1)


def hexed(text):
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xef\xbf\xbd").hex()


def begin():
    """Tell where the runtime is."""
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    wait("%x" % sys.hexversion, "%x" % runtime)
