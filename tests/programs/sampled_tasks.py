"""Two tasks that wait in nap(), and one that turns; each nap takes 0.4 s, turning 0.2 s."""
import asyncio
import time


async def nap():
    await asyncio.sleep(0.4)


async def job():
    await nap()


def turn():
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass


async def busy():
    turn()


async def main():
    await asyncio.gather(job(), job(), busy())


asyncio.run(main())
