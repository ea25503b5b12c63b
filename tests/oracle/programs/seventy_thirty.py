"""Two functions of identical code, 70 % and 30 %."""

import oracle

going, now = oracle.going, oracle.now


def heavy(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def light(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in oracle_scales:
        if going()[0]:
            return
        start = now()
        heavy(70 * scale)
        middle = now()
        light(30 * scale)
        stamps.extend((start, middle, now()))


oracle_scales = oracle.scales(20, 60)
log = oracle.log()
oracle.ready([["<module>", "main", "heavy"], ["<module>", "main", "light"]],
             {"70/30": ["heavy", "light"]})
main(log)
oracle.done((["heavy", "light"], log))
