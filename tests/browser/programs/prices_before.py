import math


def price(item):
    total = 0
    for i in range(50):
        total += item * i
    return total


def tax(amount):
    rate = math.sqrt(amount + 4)
    return amount * rate


def order(items):
    discount = max(items)
    return sum(tax(price(item)) for item in items) - discount


for _ in range(400):
    order([1, 2, 3])
