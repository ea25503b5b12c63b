"""A small program with a known number of calls: `shop.py N [slow]`. Compared with itself, only `price` differs."""

import sys
import threading
import time


def price(item, slow):
    total = 0
    for i in range(200 if slow else 50):
        total += item * i
    return total


def order(items, slow):
    return sum(price(item, slow) for item in items)


def wait():
    time.sleep(0.05)


def serve(n, slow):
    for _ in range(n):
        order([1, 2, 3], slow)
    wait()


if __name__ == '__main__':
    count, slowly = int(sys.argv[1]), len(sys.argv) > 2
    helper = threading.Thread(target=serve, args=(count // 2, slowly), name='helper')
    helper.start()
    serve(count, slowly)
    helper.join()
