"""Messages between the processes: pickles with their length"""

import asyncio
import pickle
import struct


async def send(writer, message):
    body = pickle.dumps(message, protocol=5)
    writer.write(struct.pack("<I", len(body)))
    writer.write(body)
    await writer.drain()


async def receive(reader):
    length = struct.unpack("<I", await reader.readexactly(4))[0]
    return pickle.loads(await reader.readexactly(length))


class Client:
    """One request at a time, on one connection"""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.lock = reader, writer, asyncio.Lock()

    @classmethod
    async def connect(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, *message):
        async with self.lock:
            await send(self.writer, message)
            return await receive(self.reader)
