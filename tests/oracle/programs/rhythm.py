"""A period of exactly 10 ms, kept to the clock, with two functions that take 30 % and 70 % of each: a
sampler whose own period is a multiple sees one of them only."""

import oracle

going, now = oracle.going, oracle.now

PERIOD = 10_000_000


def third(until):
    x = 0
    while now() < until:
        x += 1
    return x


def rest(until):
    x = 0
    while now() < until:
        x += 1
    return x


def main(stamps):
    begin = 0
    while not going()[0]:
        begin = max(begin + PERIOD, now() // PERIOD * PERIOD)
        start = now()
        third(begin + PERIOD * 3 // 10)
        middle = now()
        rest(begin + PERIOD)
        stamps.extend((start, middle, now()))


log = oracle.log()
oracle.ready([["<module>", "main", "third"], ["<module>", "main", "rest"]],
             {"30/70": ["third", "rest"]})
main(log)
oracle.done((["third", "rest"], log))
