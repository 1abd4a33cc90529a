"""Users who open the demo, upload an image, ask two questions and close the tab"""

import asyncio
import itertools
import json
import sys
import time

RUN_S, USERS = 36.0, 6


async def session(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for fn in ("upload", "ask", "ask"):
        event = {"session": f"s-{number}", "fn": fn, "seed": number}
        writer.write(json.dumps(event).encode() + b"\n")
        await reader.readline()
    writer.close()
    await writer.wait_closed()


async def user(port, numbers, end):
    while time.monotonic() < end:
        number = next(numbers)
        await session(port, number)
        if number % 25 == 0:
            print(f"{number} sessions", flush=True)


async def main():
    port, numbers, end = int(sys.argv[1]), itertools.count(1), time.monotonic() + RUN_S
    await asyncio.gather(*[user(port, numbers, end) for _ in range(USERS)])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(json.dumps({"fn": "shutdown"}).encode() + b"\n")
    await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main())
