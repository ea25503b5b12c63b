"""Two recursions of fixed depth, each with its own bottom, 50 % and 50 %, and between their levels
nothing else: a bottom under the wrong number of levels never was. The way down and up is run often
enough to be seen."""

import oracle

going, now = oracle.going, oracle.now

SHALLOW, STEEP = 6, 25


def down(level, count):
    if level > 1:
        return down(level - 1, count)
    return floor(count)


def floor(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def dive(level, count):
    if level > 1:
        return dive(level - 1, count)
    return seabed(count)


def seabed(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        start = now()
        for _ in again:
            down(SHALLOW, scale)
        middle = now()
        for _ in again:
            dive(STEEP, scale)
        stamps.extend((start, middle, now()))


again = range(30)
scales = oracle.scales(20, 60)
log = oracle.log()
oracle.ready([["<module>", "main"] + ["down"] * SHALLOW + ["floor"],
              ["<module>", "main"] + ["dive"] * STEEP + ["seabed"]],
             {"shallow/steep": ["down", "dive"]})
main(log)
oracle.done((["down", "dive"], log))
