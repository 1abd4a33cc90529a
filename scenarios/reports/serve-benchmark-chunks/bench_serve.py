"""Benchmarks the server: random prompts of one length after the other, two requests at a time"""

import asyncio
import random
import statistics
import sys
import time

from endpoint_request import request

CONCURRENCY, OUTPUT = 2, 64
# The length of the prompts, and for how many seconds they are sent
STAGES = [(200, 8.0), (1000, 8.0), (4000, 8.0), (40000, 8.0)]


async def client(port, number, length, end, results):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    source = random.Random(f"{number}/{length}")
    while time.monotonic() < end:
        prompt = "".join(map(chr, source.choices(range(0x4E00, 0x4E00 + 6000), k=length - source.randrange(50))))
        results.append(await request(reader, writer, prompt, OUTPUT, echo=True))
    writer.close()


async def main():
    for length, seconds in STAGES:
        results, end = [], time.monotonic() + seconds
        await asyncio.gather(*[client(int(sys.argv[1]), n, length, end, results) for n in range(CONCURRENCY)])
        first = statistics.median(one[1] for one in results) * 1e3
        between = statistics.fmean(sum(one[2]) / len(one[2]) for one in results) * 1e3
        print(f"{len(results)} prompts of {length}: {first:.1f} ms to the first, {between:.2f} ms each", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
