"""Import time: two modules that work while they are imported, 60 % and 40 %, imported over and over.
Between the import statement and the module's own code lie the functions of importlib."""

import os
import sys
import tempfile

import oracle

going, now = oracle.going, oracle.now

BODY = """
x = 0
for i in range({count}):
    x += i & 3
"""


def load_large():
    import oracle_large


def load_small():
    import oracle_small


def main(stamps):
    modules = sys.modules
    while not going()[0]:
        t0 = now()
        load_large()
        t1 = now()
        load_small()
        stamps.extend((t0, t1, now()))
        del modules["oracle_large"], modules["oracle_small"]


folder = tempfile.TemporaryDirectory(prefix="oracle-")
for name, count in (("large", 6000), ("small", 4000)):
    with open(os.path.join(folder.name, f"oracle_{name}.py"), "w") as file:
        file.write(BODY.format(count=count))
sys.path.insert(0, folder.name)
log = oracle.log()
oracle.ready([["<module>", "main", "load_" + name, "~", f"<module>@oracle_{name}.py"]
              for name in ("large", "small")], {"60/40": ["load_large", "load_small"]},
             modules=["oracle_large.py", "oracle_small.py"])
main(log)
folder.cleanup()
oracle.done((["load_large", "load_small"], log))
