"""What viztracer recorded for 1.1.1.json: viztracer --ignore_frozen -o 1.1.1.json recorded.py"""

import threading

from viztracer import get_tracer


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Box:
    def fill(self, items):
        return sorted(items, key=lambda x: -x)


def numbers():
    yield from range(3)


def work():
    fib(4)
    Box().fill([2, 3, 1])
    list(numbers())


with get_tracer().log_event("phase"):
    work()
get_tracer().log_instant("now", args={"why": "because"})
get_tracer().log_var("level", 3)
for _ in range(2):
    thread = threading.Thread(target=work, name="twin")
    thread.start()
    thread.join()
