"""Forty clients at a time, each of which connects again and again."""

import asyncio
import sys

CONNECTIONS = 900


async def connect(port, frames):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(frames):
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
    writer.transport.abort()


async def client(port, numbers):
    for number in numbers:
        await connect(port, 4 + number % 9)


async def main():
    port, numbers = int(sys.argv[1]), iter(range(CONNECTIONS))
    await asyncio.gather(*[client(port, numbers) for _ in range(40)])


if __name__ == "__main__":
    asyncio.run(main())
