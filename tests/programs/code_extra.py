"""Keeps numbers beside code objects, as debuggers and compilers do, and tells as JSON which of them were freed."""
import ctypes
import gc
import json
import sys

api = ctypes.pythonapi
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
freed = []


@FREE
def free(value):
    freed.append(value)


request = getattr(api, "_PyEval_RequestCodeExtraIndex", None) or api.PyUnstable_Eval_RequestCodeExtraIndex
request.argtypes, request.restype = (FREE,), ctypes.c_ssize_t
keep = getattr(api, "_PyCode_SetExtra", None) or api.PyUnstable_Code_SetExtra
keep.argtypes, keep.restype = (ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p), ctypes.c_int
fetch = getattr(api, "_PyCode_GetExtra", None) or api.PyUnstable_Code_GetExtra
fetch.argtypes, fetch.restype = (ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p), ctypes.c_int


def made(n):
    names = {}
    exec(f"def made{n}(): return {n}", names)
    return names[f"made{n}"]


def fetched(code, index):
    value = ctypes.c_void_p()
    fetch(code, index, ctypes.byref(value))
    return value.value


def main():
    indices, seen = [request(free), request(free)], []
    for n in range(100):
        function = made(n)
        if n % 2:
            function()
        if n < 6:  # before and after it ran for the first time, in the first slot or the last
            keep(function.__code__, indices[n // 2 % 2], 1000 + n)
        function()
        seen += [fetched(function.__code__, index) for index in indices] if n < 8 else []
    del function
    gc.collect()
    json.dump({"freed": freed, "seen": seen}, sys.stdout)


main()
