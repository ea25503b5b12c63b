"""Sleeping 40 % of the time and busy for the rest: nap → time.sleep, and toil."""

import time

import oracle

going, now, sleep = oracle.going, oracle.now, time.sleep


def nap(seconds):
    sleep(seconds)


def toil(until):
    x = 0
    while now() < until:
        x += 1
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        start = now()
        nap(0.00004 * scale)
        middle = now()
        toil(middle + (middle - start) * 3 // 2)
        stamps.extend((start, middle, now()))


scales = oracle.scales(20, 60)
log = oracle.log()
oracle.ready([["<module>", "main", "nap"], ["<module>", "main", "toil"]],
             {"40/60": ["nap", "toil"]}, states={"nap": "sleep", "toil": "python"})
main(log)
oracle.done((["nap", "toil"], log))
