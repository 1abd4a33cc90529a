"""Messages over a stream: a frame has a length and its bytes, and a connection queues what it has read"""

import asyncio
import struct

LENGTH = struct.Struct("!Q")


class ConnectionClosed(Exception):
    pass


class Connection:
    """One side of a connection; a task of its own reads frames, and answers control frames at once"""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.messages = asyncio.Queue()
        self.worker_task = asyncio.get_running_loop().create_task(self.worker())

    async def worker(self):
        try:
            while True:
                message = await self.read_message()
                await self.messages.put(message)
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.messages.put(None)

    async def read_message(self):
        (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        return await self.reader.readexactly(length)

    async def recv(self):
        message = await self.messages.get()
        if message is None:
            raise ConnectionClosed
        return message

    async def send(self, message):
        self.writer.write(LENGTH.pack(len(message)) + message)
        await self.writer.drain()

    async def close(self):
        self.worker_task.cancel()
        self.writer.close()


async def connect(port):
    return Connection(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))


async def serve(handler):
    async def connected(reader, writer):
        connection = Connection(reader, writer)
        try:
            await handler(connection)
        except ConnectionError:
            pass
        finally:
            await connection.close()

    return await asyncio.start_server(connected, "127.0.0.1", 0)
