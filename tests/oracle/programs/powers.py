"""Four functions of identical code: 1, 2, 4 and 8 parts."""

import oracle

going, now = oracle.going, oracle.now


def one(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def two(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def four(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def eight(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        a = now()
        one(10 * scale)
        b = now()
        two(20 * scale)
        c = now()
        four(40 * scale)
        d = now()
        eight(80 * scale)
        stamps.extend((a, b, c, d, now()))


scales = oracle.scales(20, 60)
log = oracle.log()
names = ["one", "two", "four", "eight"]
oracle.ready([["<module>", "main", name] for name in names], {"1/2/4/8": names})
main(log)
oracle.done((names, log))
