"""Checkpoints go to a database server over one connection; each put is answered when it is durable"""

import asyncio
import pickle
import struct


class AsyncSaver:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.lock = asyncio.Lock()

    @classmethod
    async def connect(cls, path):
        return cls(*await asyncio.open_unix_connection(path))

    async def aput(self, config, checkpoint, metadata):
        data = pickle.dumps((config, checkpoint, metadata))
        async with self.lock:
            self.writer.write(struct.pack("<Q", len(data)))
            self.writer.write(data)
            await self.writer.drain()
            await self.reader.readexactly(1)
