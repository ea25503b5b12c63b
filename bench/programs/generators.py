"""Generators: a chain of two, and many short ones."""


def count(n):
    for i in range(n):
        yield i


def doubled(source):
    for i in source:
        yield 2 * i


def work(loops):
    for _ in range(loops):
        for _ in doubled(count(1000)):
            pass
        for _ in range(100):
            for _ in count(3):
                pass
