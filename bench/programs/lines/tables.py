"""Dictionaries and lists that grow, are looked up, sorted and emptied."""


def fill(count):
    groups = {}
    for i in range(count):
        key = i * 7919 % 97
        rows = groups.get(key)
        if rows is None:
            rows = []
            groups[key] = rows
        rows.append(i)
    return groups


def summarise(groups):
    totals = []
    for key, rows in groups.items():
        total = 0
        for value in rows:
            total += value
        totals.append((total, key))
    totals.sort()
    return totals


def work(loops):
    for _ in range(loops):
        groups = fill(500)
        totals = summarise(groups)
        while totals:
            _, key = totals.pop()
            del groups[key]
