"""A music share: sends the samples of a track; after some time the disk behind some albums does not answer"""

import asyncio
import signal
import struct
import time

import numpy as np

RATE, FROM_S = 22050, 4.0


async def main():
    stop, begin = asyncio.Event(), time.monotonic()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def connection(reader, writer):
        try:
            track = struct.unpack("<I", await reader.readexactly(4))[0]
            if track % 8 == 5 and time.monotonic() > begin + FROM_S:
                await stop.wait()
            elif not stop.is_set():
                tone = np.sin(np.arange(12 * RATE) * (0.01 + track % 50 * 0.004)).astype("<f4").tobytes()
                writer.write(struct.pack("<I", len(tone)) + tone)
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
