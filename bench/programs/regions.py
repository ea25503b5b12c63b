"""What a named region costs, by its own clock: regions.py WAY [ANSWER.json]

Writes the least nanoseconds that `with` adds to a turn of an empty loop, of many short batches, by the CPU clock of the
thread. WAY is one of MAKERS; whether something records is the matter of who starts this.
"""

import contextlib
import json
import sys
import time

BATCHES, TURNS = 40, 20_000


def fathom_region():
    import fathom

    def work(turns, region=fathom.region):
        for _ in turns:
            with region("assembly"):
                pass

    return work


def fathom_values():
    import fathom

    def work(turns, region=fathom.region):
        for _ in turns:
            with region("assembly", step=7):
                pass

    return work


def fathom_kept():
    import fathom

    def work(turns, region=fathom.region("assembly")):
        for _ in turns:
            with region:
                pass

    return work


def fathom_tokens():
    import fathom

    def work(turns, begin=fathom.region_begin, end=fathom.region_end):
        for _ in turns:
            end(begin("assembly"))

    return work


def contextmanager():
    @contextlib.contextmanager
    def region(name):
        yield

    def work(turns):
        for _ in turns:
            with region("assembly"):
                pass

    return work


def nvtx():
    from nvtx import annotate

    def work(turns):
        for _ in turns:
            with annotate("assembly"):
                pass

    return work


def ittapi():
    from ittapi import task

    def work(turns):
        for _ in turns:
            with task("assembly"):
                pass

    return work


def viztracer(recording=False):
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0, log_sparse=True, tracer_entries=10_000_000)
    if recording:
        tracer.start()

    def work(turns, log_event=tracer.log_event):
        for _ in turns:
            with log_event("assembly"):
                pass

    return work


MAKERS = {"region": fathom_region, "values": fathom_values, "kept": fathom_kept, "tokens": fathom_tokens,
          "contextmanager": contextmanager, "nvtx": nvtx, "ittapi": ittapi, "viztracer": viztracer,
          "viztracer-recording": lambda: viztracer(True)}


def empty(turns):
    for _ in turns:
        pass


def seconds(work, turns):
    start = time.thread_time()
    work(range(turns))
    return time.thread_time() - start


def main(way, answer=None):
    work = MAKERS[way]()
    slow = seconds(work, 1000) / 1000 > 1e-6
    turns = TURNS // 10 if slow else TURNS
    best = [min(each) for each in zip(*((seconds(empty, turns), seconds(work, turns)) for _ in range(BATCHES)))]
    ns = 1e9 * (best[1] - best[0]) / turns
    if answer:
        with open(answer, "w") as file:
            json.dump(ns, file)
    else:
        print(f"{way} {ns:.1f} ns")


if __name__ == "__main__":
    main(*sys.argv[1:])
