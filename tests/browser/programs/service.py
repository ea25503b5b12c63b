"""A service on asyncio: 60 requests of the same kind, four at a time; every tenth asks twice, the 37th is slow. Then
30,000 instants, and a counter at each hundredth."""

import asyncio
import time

import fathom


def parse(text):
    return text.split("=")


def look_up(key):
    return key * 2


def render(pairs):
    return "".join(map(str, pairs))


def answer(number):
    key = parse(f"number={number}")
    found = [look_up(key[1])]
    if number % 10 == 9:
        found.append(look_up(key[1]))
    if number == 37:
        time.sleep(0.05)
    return render(found)


async def request(number):
    await asyncio.sleep(0.001)
    return answer(number)


async def client(first):
    for number in range(first, 60, 4):
        await asyncio.create_task(request(number), name=f"request-{number}")


async def main():
    await asyncio.gather(*(asyncio.create_task(client(k), name=f"client-{k}") for k in range(4)))


asyncio.run(main())
for i in range(30_000):
    if i % 100 == 0:
        fathom.counter("refused", i)
    fathom.instant("refused")
