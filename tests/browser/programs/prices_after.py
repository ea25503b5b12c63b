"""The same shop: with lines above, `tax` before `price`, a loop that is longer, one line new and one gone."""
import math


def tax(amount):
    rate = math.sqrt(amount + 4)
    return amount * rate


def price(item):
    total = 0
    for i in range(200):
        total += item * i
    return total


def order(items):
    known = sorted(items)
    return sum(tax(price(item)) for item in known)


for _ in range(400):
    order([1, 2, 3])
