"""The largest eigenvalue of a matrix that is never stored: a call for each of its elements."""


def element(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(vector):
    result = []
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += element(i, j) * vector[j]
        result.append(total)
    return result


def work(loops):
    vector = [1.0] * 20
    for _ in range(loops):
        vector = times(vector)
        largest = max(vector)
        for i in range(20):
            vector[i] /= largest
