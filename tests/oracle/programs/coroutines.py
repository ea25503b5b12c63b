"""Tasks of one event loop that take turns: red 50 %, green 30 %, blue 20 %, each three coroutines
deep. Below the loop every stack begins with asyncio's own functions."""

import asyncio

import oracle

going, now, scales = oracle.going, oracle.now, oracle.scales


def red_work(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


async def red_step(count):
    red_work(count)


async def red(stamps):
    for scale in scales():
        if going()[0]:
            return
        start = now()
        await red_step(50 * scale)
        stamps.extend((start, now()))
        await nap(0)


def green_work(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


async def green_step(count):
    green_work(count)


async def green(stamps):
    for scale in scales():
        if going()[0]:
            return
        start = now()
        await green_step(30 * scale)
        stamps.extend((start, now()))
        await nap(0)


def blue_work(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


async def blue_step(count):
    blue_work(count)


async def blue(stamps):
    for scale in scales():
        if going()[0]:
            return
        start = now()
        await blue_step(20 * scale)
        stamps.extend((start, now()))
        await nap(0)


async def everything():
    await asyncio.gather(red(logs[0]), green(logs[1]), blue(logs[2]))


nap = asyncio.sleep
logs = [oracle.log() for _ in range(3)]
names = ["red_work", "green_work", "blue_work"]
oracle.ready([["<module>", "~", colour, colour + "_step", colour + "_work"]
              for colour in ("red", "green", "blue")]
             + [["<module>", "~", colour, "~"] for colour in ("red", "green", "blue")]
             + [["<module>", "~", "everything", "~"]], {"tasks": names})
asyncio.run(everything())
oracle.done(*(([name], log) for name, log in zip(names, logs)))
