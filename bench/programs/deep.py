"""Deep recursion through three functions, so that there are many calling contexts."""

DEPTH = 600


def down(n):
    return left(n - 1) if n % 3 else right(n - 1)


def left(n):
    return down(n - 1) + 1 if n > 0 else 0


def right(n):
    return down(n - 1) - 1 if n > 0 else 0


def work(loops):
    for _ in range(loops):
        down(DEPTH)
