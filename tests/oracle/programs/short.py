"""Functions of some tens of nanoseconds. `both` alternates a → b → c and d → e → f in one tight loop,
so that a reader which is not careful sees a → e or d → b → c, which never were. Beside it `left` and
`right`, which call one of the two chains only, and `steady`, which calls nothing: a reader that drops
what it could not read in one piece sees too much of `steady`."""

import oracle

going, now = oracle.going, oracle.now


def c(x):
    return x + 1


def b(x):
    return c(x) + 1


def a(x):
    return b(x) + 1


def f(x):
    return x + 1


def e(x):
    return f(x) + 1


def d(x):
    return e(x) + 1


def both(count):
    for i in range(count):
        a(i)
        d(i)


def left(count):
    for i in range(count):
        a(i)


def right(count):
    for i in range(count):
        d(i)


def steady(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    for scale in scales:
        if going()[0]:
            return
        t0 = now()
        both(15 * scale)
        t1 = now()
        left(10 * scale)
        t2 = now()
        right(10 * scale)
        t3 = now()
        steady(60 * scale)
        stamps.extend((t0, t1, t2, t3, now()))


scales = oracle.scales(20, 60)
log = oracle.log()
chains = (["a", "b", "c"], ["d", "e", "f"])
oracle.ready([["<module>", "main", "both", *chain] for chain in chains]
             + [["<module>", "main", "left", *chains[0]], ["<module>", "main", "right", *chains[1]],
                ["<module>", "main", "steady"]],
             {"short/steady": ["both", "left", "right", "steady"]})
main(log)
oracle.done((["both", "left", "right", "steady"], log))
