"""Time inside C functions belongs to the Python function that called them: sum over a range, sorting,
and for comparison a loop in Python."""

import oracle

going, now = oracle.going, oracle.now


def summing(count):
    return sum(range(count))


def sorting(numbers):
    return sorted(numbers)


def looping(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def main(stamps):
    numbers = [(i * 7919) % 1009 for i in range(1000)]
    for scale in scales:
        if going()[0]:
            return
        t0 = now()
        summing(200 * scale)
        t1 = now()
        sorting(numbers)
        t2 = now()
        looping(60 * scale)
        stamps.extend((t0, t1, t2, now()))


scales = oracle.scales(20, 60)
log = oracle.log()
names = ["summing", "sorting", "looping"]
oracle.ready([["<module>", "main", name] for name in names] + [["<module>", "main", "<listcomp>"]],
             {"C and Python": names})
main(log)
oracle.done((names, log))
