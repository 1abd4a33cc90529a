"""Schedules a task for each scanned page; the broker takes no more when its stream is long"""

import asyncio
import sys
import time

import numpy as np
from wire import Client

SECONDS = 27.0


async def main():
    client, random, pages = await Client.connect(int(sys.argv[1])), np.random.default_rng(3), 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        height, width = int(random.integers(520, 720)), int(random.integers(440, 560))
        page = random.integers(0, 255, (height, width), np.uint8)
        await client.call("add", {"key": f"page-{pages}", "function": "deskew", "args": (page, pages % 7)})
        pages += 1
    await client.call("close")
    print(f"{pages} pages scheduled", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
