"""Code objects that live for a fraction of a millisecond: compiled, run and dropped, so that the next
one lies where the last one was. A reader that knows code by its address alone takes one for another:
then made_3 calls part_5, or some kinds get the time of others. There are 20 kinds that are slow (75 %
in all) and 20 that are quick, each as often as the other."""

import oracle

going, now = oracle.going, oracle.now

KINDS = 20
SOURCE = """
def part_{kind}(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x

def made_{kind}(count):
    return part_{kind}(count)

made_{kind}({count})
"""


def run_slow(code):
    exec(code, {})


def run_quick(code):
    exec(code, {})


def main():
    number = 0
    for scale in scales:
        if going()[0]:
            return
        number += 1
        kind = number % KINDS
        slow = compile(SOURCE.format(kind=kind, count=60 * scale), "<made>", "exec")
        t0 = now()
        run_slow(slow)
        t1 = now()
        del slow
        quick = compile(SOURCE.format(kind=KINDS + kind, count=20 * scale), "<made>", "exec")
        t2 = now()
        run_quick(quick)
        t3 = now()
        del quick
        callers.extend((t0, t1, t2, t3))
        kinds[kind].extend((t0, t1))
        kinds[KINDS + kind].extend((t2, t3))


scales = oracle.scales(40, 90)
callers, kinds = oracle.log(), [oracle.log() for _ in range(2 * KINDS)]
made = [f"made_{kind}" for kind in range(2 * KINDS)]
oracle.ready([["<module>", "main", "run_slow" if kind < KINDS else "run_quick", "<module>@<made>",
               f"made_{kind}", f"part_{kind}"] for kind in range(2 * KINDS)],
             {"callers": ["run_slow", "run_quick"], "kinds": made}, modules=["<made>"])
main()
oracle.done((["run_slow", "between", "run_quick"], callers),
            *(([name], log) for name, log in zip(made, kinds)))
