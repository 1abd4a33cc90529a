"""A telescope's publisher sends the frames of a camera to a subscriber, which archives them as they come."""

import asyncio
import contextlib
import lzma
import multiprocessing
import socket
import struct
import zlib

import numpy as np

FRAMES = 900
SHAPE = 640, 800


def archive(port):
    """The subscriber: reads frame after frame and packs each for the archive."""
    packed = frames = 0
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as stream:
        with contextlib.suppress(ConnectionResetError, struct.error):
            while True:
                length, checksum = struct.unpack("!II", stream.read(8))
                frame = stream.read(length)
                if len(frame) == length and zlib.crc32(frame) != checksum:
                    raise ValueError(f"frame {frames} is damaged")
                packed += len(lzma.compress(frame[:160_000], preset=3))
                frames += 1
    print(f"archived {frames} frames in {packed} bytes", flush=True)


class Camera:
    def __init__(self):
        self.random = np.random.default_rng(0)
        self.sky = self.random.integers(90, 110, SHAPE).astype(np.uint8)

    def expose(self):
        noise = self.random.normal(0, 5, SHAPE)
        self.sky = np.roll(self.sky, 1, axis=1)
        return np.clip(self.sky + noise, 0, 255).astype(np.uint8).tobytes()


async def publish(writer):
    camera = Camera()
    for number in range(FRAMES):
        frame = camera.expose()
        writer.write(struct.pack("!II", len(frame), zlib.crc32(frame)) + frame)
        await asyncio.sleep(0)
        if number % 100 == 0:
            print(f"frame {number}", flush=True)
    writer.transport.abort()


async def main():
    connected = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: connected.set_result(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    subscriber = multiprocessing.get_context("spawn").Process(target=archive, args=(port,))
    subscriber.start()
    await publish(await connected)
    server.close()
    await asyncio.to_thread(subscriber.join)


if __name__ == "__main__":
    asyncio.run(main())
