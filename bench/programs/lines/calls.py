"""Small functions and methods that call one another: a call every few lines."""


class Counter:
    def __init__(self):
        self.value = 0

    def add(self, amount):
        self.value += amount
        return self.value


def double(x):
    return x + x


def step(counter, x):
    y = double(x)
    if y & 4:
        return counter.add(y)
    return double(y)


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def work(loops):
    counter = Counter()
    for _ in range(loops):
        for x in range(100):
            step(counter, x)
        fib(9)
