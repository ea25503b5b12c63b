"""What a call takes: a loop of calls, many times over. Prints the nanoseconds of one turn, by its own
clock."""

import time

TURNS, ROUNDS = 2000, 100


def called(x):
    return x


def calling(turns):
    for i in turns:
        called(i)


def main():
    best = None
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        calling(range(TURNS))
        taken = time.perf_counter_ns() - start
        best = taken if best is None or taken < best else best
    print(best / TURNS)


main()
