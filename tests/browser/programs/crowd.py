"""300 tasks that live at once: each runs at the begin, and once more when all are there, one after the other."""

import asyncio


async def guest(arrived, go):
    arrived.release()
    await go.wait()
    sum(range(2000))


async def main():
    arrived, go = asyncio.Semaphore(0), asyncio.Event()
    guests = [asyncio.create_task(guest(arrived, go), name=f"guest-{k}") for k in range(300)]
    for _ in guests:
        await arrived.acquire()
    go.set()
    await asyncio.gather(*guests)


asyncio.run(main())
