"""Burns a millisecond and sleeps a millisecond, by turns: a sampler that gets its processor late after
the program woke up sees too much sleep."""

import time

import oracle

going, now, sleep = oracle.going, oracle.now, time.sleep


def burn(until):
    x = 0
    while now() < until:
        x += 1
    return x


def pause(seconds):
    sleep(seconds)


def main(stamps):
    while not going()[0]:
        start = now()
        burn(start + 1_000_000)
        middle = now()
        pause(0.001)
        stamps.extend((start, middle, now()))


log = oracle.log()
oracle.ready([["<module>", "main", "burn"], ["<module>", "main", "pause"]],
             {"burn/sleep": ["burn", "pause"]}, states={"pause": "sleep"})
main(log)
oracle.done((["burn", "pause"], log))
