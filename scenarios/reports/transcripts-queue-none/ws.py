"""Messages over a stream, with a queue of received ones that pauses reading above its high-water mark"""

import asyncio
import collections
import struct

LENGTH = struct.Struct("!I")


class ConnectionClosed(Exception):
    pass


class Assembler:
    """The received messages; reading pauses at `high` of them, and goes on at `low`"""

    def __init__(self, high, low=None, pause=lambda: None, resume=lambda: None):
        self.high, self.low = high, high // 4 if low is None else low
        self.pause, self.resume = pause, resume
        self.messages, self.paused, self.closed = collections.deque(), False, False
        self.arrived = asyncio.Event()

    def put(self, message):
        self.messages.append(message)
        self.arrived.set()
        if not self.paused and len(self.messages) > self.high:
            self.paused = True
            self.pause()

    def close(self):
        self.closed = True
        self.arrived.set()

    async def get(self):
        while not self.messages:
            if self.closed:
                raise ConnectionClosed
            self.arrived.clear()
            await self.arrived.wait()
        message = self.messages.popleft()
        if self.paused and len(self.messages) <= self.low:
            self.paused = False
            self.resume()
        return message


class ClientConnection(asyncio.Protocol):
    def __init__(self, max_queue):
        if isinstance(max_queue, int):
            max_queue = (max_queue, None)
        self.max_queue = max_queue
        self.received = bytearray()
        self.recv_messages = Assembler(*self.max_queue, pause=self.pause_reading, resume=self.resume_reading)

    def pause_reading(self):
        self.transport.pause_reading()

    def resume_reading(self):
        self.transport.resume_reading()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while len(self.received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self.received)
            if len(self.received) < LENGTH.size + length:
                return
            self.recv_messages.put(bytes(self.received[LENGTH.size : LENGTH.size + length]))
            del self.received[: LENGTH.size + length]

    def connection_lost(self, error):
        self.recv_messages.close()

    async def recv(self):
        return await self.recv_messages.get()

    def send(self, message):
        self.transport.write(LENGTH.pack(len(message)) + message)

    def close(self):
        self.transport.close()


async def connect(port, max_queue=16):
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: ClientConnection(max_queue), "127.0.0.1", port)
    return connection
