"""Generators, whose frames lie outside the thread's stack: two chains of three, one of `yield from`
and one of loops, and a third pair that is resumed in strict alternation."""

import oracle

going, now = oracle.going, oracle.now


def inner(count):
    for i in range(count):
        yield i


def middle(count):
    yield from inner(count)


def outer(count):
    yield from middle(count)


def chain(count):
    x = 0
    for i in outer(count):
        x += i
    return x


def source(count):
    for i in range(count):
        yield i


def doubled(count):
    for i in source(count):
        yield 2 * i


def raised(count):
    for i in doubled(count):
        yield i + 1


def nest(count):
    x = 0
    for i in raised(count):
        x += i
    return x


def tick(count):
    for i in range(count):
        yield tick_part(i)


def tick_part(x):
    return x + 1


def tock(count):
    for i in range(count):
        yield tock_part(i)


def tock_part(x):
    return x + 1


def turns(count):
    x = 0
    for i, j in zip(tick(count), tock(count)):
        x += i + j
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        t0 = now()
        chain(20 * scale)
        t1 = now()
        nest(20 * scale)
        t2 = now()
        turns(15 * scale)
        stamps.extend((t0, t1, t2, now()))


scales = oracle.scales(20, 60)
log = oracle.log()
names = ["chain", "nest", "turns"]
oracle.ready([["<module>", "main", "chain", "outer", "middle", "inner"],
              ["<module>", "main", "nest", "raised", "doubled", "source"],
              ["<module>", "main", "turns", "tick", "tick_part"],
              ["<module>", "main", "turns", "tock", "tock_part"]], {"generators": names})
main(log)
oracle.done((names, log))
