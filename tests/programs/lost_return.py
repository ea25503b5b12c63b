"""A trace function raises when functions return, which nobody else hears of then; their code goes, and the process forks."""
import gc
import os
import sys

SOURCE = """
def thrown():
    raise KeyError
def main():
    try: thrown()
    except KeyError: pass
    return 3
"""


class Quit(Exception):
    pass


def trial(name):
    names = {}
    exec(compile(SOURCE, "<made>", "exec"), names)

    def trace(frame, event, arg):
        if event == "return" and frame.f_code.co_name == name:
            raise Quit
        return trace

    sys.settrace(trace)
    try:
        names["main"]()
    except Quit:
        pass
    finally:
        sys.settrace(None)


def later():
    return 3


for name in ("thrown", "main") * 3:
    trial(name)
    gc.collect()
filler = [bytes([91]) * n for n in range(60, 1200)] + [tuple(range(n)) for n in range(60)]
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        later()
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
