"""JSON with indents, which the library writes by generators in Python."""

import json

DATA = [{"key%d" % i: [i, str(i), None, {"x": i * 1.5}]} for i in range(100)]


def work(loops):
    for _ in range(loops):
        json.loads(json.dumps(DATA, indent=1))
