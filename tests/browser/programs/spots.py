"""Several expensive expressions on one line, one of them behind a character of two bytes, one over two lines."""


def work(n):
    numbers = list(range(n))
    got = "é" * 3, sorted(numbers, key=str), sum(numbers) + max(numbers), [hash(x) for x in numbers]
    total = (sorted(numbers, key=float)[0]
             + len(got))
    return total


for _ in range(60):
    work(20_000)
