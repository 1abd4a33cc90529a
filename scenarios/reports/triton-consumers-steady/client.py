"""Producer and consumers in asyncio: images come from a generator, eight inferences are under way at a time"""

import asyncio
import json
import os
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS, CONSUMERS, QUEUED = 25.0, 8, 16
BATCHES = (1, 2, 4, 8)


async def producer(queue, ends):
    generator, number = np.random.default_rng(0), 0
    while time.monotonic() < ends:
        batch = BATCHES[number % len(BATCHES)]
        images = generator.standard_normal((batch, 3, 64, 64), dtype=np.float32)
        await queue.put((number, images))
        number += 1
    for _ in range(CONSUMERS):
        await queue.put(None)


async def infer(reader, writer, images):
    body = images.tobytes()
    head = json.dumps({"shape": images.shape, "bytes": len(body)}).encode() + b"\n"
    writer.write(head + body)
    await writer.drain()
    answer = json.loads(await reader.readline())
    scores = np.frombuffer(await reader.readexactly(answer["bytes"]), dtype=np.float32)
    return scores.reshape(answer["shape"])


async def consumer(queue, port, counts):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (job := await queue.get()) is not None:
        number, images = job
        scores = await infer(reader, writer, images)
        counts[int(scores[0].argmax())] += 1
        if number % 400 == 0:
            print(f"request {number}: batch of {len(images)}", flush=True)
    writer.close()
    await writer.wait_closed()


async def main(port):
    queue, counts = asyncio.Queue(QUEUED), np.zeros(100, dtype=np.int64)
    ends = time.monotonic() + SECONDS
    await asyncio.gather(producer(queue, ends), *(consumer(queue, port, counts) for _ in range(CONSUMERS)))
    print(f"{counts.sum()} inferences", flush=True)


if __name__ == "__main__":
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "model_server.py")], stdout=subprocess.PIPE, text=True)
    try:
        asyncio.run(main(int(server.stdout.readline())))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
