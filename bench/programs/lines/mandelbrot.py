"""Complex numbers in an inner loop of four lines."""


def escape(c, most):
    z = 0j
    for n in range(most):
        if abs(z) > 2.0:
            return n
        z = z * z + c
    return most


def row(y, width):
    counts = []
    for x in range(width):
        c = complex(3.0 * x / width - 2.0, y)
        counts.append(escape(c, 50))
    return counts


def work(loops):
    for i in range(loops):
        row(0.05 * (i % 20), 40)
