"""Short statements, one after the other: hardly any work between two lines."""


def steps(count):
    a = 1
    b = 2
    total = 0
    while count:
        c = a
        a = b
        b = c
        if a > b:
            total += a
        else:
            total -= b
        count -= 1
    return total


def work(loops):
    for _ in range(loops):
        steps(1000)
