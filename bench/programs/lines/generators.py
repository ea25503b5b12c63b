"""Values handed from one generator to the next."""


def numbers(count):
    for i in range(count):
        yield i


def odd(values):
    for value in values:
        if value & 1:
            yield value


def work(loops):
    for _ in range(loops):
        total = 0
        for value in odd(numbers(500)):
            total += value
