"""A service of asyncio's streams with eight clients, all in one event loop: it waits, too."""

import asyncio
import json

from _loop import repeat


async def serve(reader, writer):
    async for line in reader:
        question = json.loads(line)
        answer = {"sum": sum(x * x for x in question["numbers"]), "id": question["id"]}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()


async def ask(number, port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(20):
        writer.write(json.dumps({"id": i, "numbers": list(range(number, number + 50))}).encode() + b"\n")
        await reader.readline()
        await asyncio.sleep(0.0005)
    writer.close()


async def session():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(ask(number, port) for number in range(8)))
    server.close()


loop = asyncio.new_event_loop()
repeat(lambda: loop.run_until_complete(session()))
