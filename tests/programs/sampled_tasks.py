"""Two tasks that wait in nap(), and one that turns; each nap takes 1.2 s, turning 0.2 s. How long it really was, by its own
clock, goes to the file that is named."""
import asyncio
import json
import sys
import time

took = {"naps": 0.0, "turn": 0.0, "main": 0.0}


async def nap():
    start = time.monotonic()
    await asyncio.sleep(1.2)
    took["naps"] += time.monotonic() - start


async def job():
    await nap()


def turn():
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass


async def busy():
    start = time.monotonic()
    turn()
    took["turn"] += time.monotonic() - start


async def main():
    start = time.monotonic()
    await asyncio.gather(job(), job(), busy())
    took["main"] += time.monotonic() - start


asyncio.run(main())
with open(sys.argv[1], "w") as file:
    json.dump(took, file)
