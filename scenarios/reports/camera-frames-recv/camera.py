"""Renders frames and sends them to whoever connects, with a number in front of each"""

import asyncio
import time

import numpy as np

import ws

SIDE, FRAME_S = 336, 0.006


def render(source, until):
    while True:
        frame = source.integers(0, 256, SIDE * SIDE, dtype=np.uint8)
        frame = (frame >> 1) + np.roll(frame >> 1, SIDE)
        if time.monotonic() > until:
            return frame


async def main():
    over = asyncio.Event()

    async def send_frames(connection):
        source, number = np.random.default_rng(0), 0
        try:
            while not connection.reader.at_eof():
                frame = render(source, time.monotonic() + FRAME_S)
                await connection.send(b"%08d" % number + frame.tobytes())
                number += 1
        finally:
            over.set()

    server = await ws.serve(send_frames)
    print(server.sockets[0].getsockname()[1], flush=True)
    await over.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
