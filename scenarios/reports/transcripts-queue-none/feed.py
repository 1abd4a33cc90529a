"""Sends audio to whoever asks for a channel, as long as it listens"""

import asyncio
import random
import struct
import sys

LENGTH = struct.Struct("!I")
SAMPLES = 24_000


async def channel(reader, writer):
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        draw = random.Random((await reader.readexactly(length)).decode())
        audio = draw.randbytes(8 * SAMPLES)
        while True:
            start = draw.randrange(6 * SAMPLES)
            writer.write(LENGTH.pack(2 * SAMPLES) + audio[start : start + 2 * SAMPLES])
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(channel, "127.0.0.1", 0)
    with open(sys.argv[1], "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
