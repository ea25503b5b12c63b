"""Nothing but calls of one small Python function."""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work(loops):
    for _ in range(loops):
        fib(18)
