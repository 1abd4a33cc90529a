"""Twelve devices that stream one conversation after another; as the day goes on, people talk for longer"""

import asyncio
import struct
import sys
import time

import numpy as np

DEVICES, SECONDS = 12, 29.0
SHORTEST, LONGEST = 250_000, 2_300_000


async def device(user, port, begin, noise, told):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    random = np.random.default_rng(user)
    writer.write(struct.pack("<I", user))
    while (share := (time.monotonic() - begin) / SECONDS) < 1:
        length = int((SHORTEST + (LONGEST - SHORTEST) * share) * random.uniform(0.85, 1.0))
        start = int(random.integers(len(noise) - length))
        writer.write(struct.pack("<I", length))
        for at in range(start, start + length, 65536):
            writer.write(noise[at : min(at + 65536, start + length)])
            await writer.drain()
        count = int(await reader.readline())
        if count % 40 == 0:
            told.append(count)
            print(f"{count} conversations, the last one of {length / 16000:.0f} s", flush=True)
    writer.close()
    await writer.wait_closed()


async def main():
    speech = np.random.default_rng(1).normal(128, 40, 4_000_000).clip(0, 255).astype(np.uint8)
    noise, begin, told = memoryview(speech.tobytes()), time.monotonic(), []
    await asyncio.gather(*[device(user, int(sys.argv[1]), begin, noise, told) for user in range(DEVICES)])
    print(f"all devices are done, {len(told)} reports", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
