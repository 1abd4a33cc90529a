"""A broker with one stream: add, read and acknowledge; what is acknowledged leaves the stream"""

import asyncio
import itertools
import signal

from wire import receive, send

LONGEST = 12


class Stream:
    def __init__(self):
        self.numbers, self.waiting, self.claimed = itertools.count(1), {}, {}
        self.changed, self.closed, self.acknowledged = asyncio.Condition(), False, 0

    def __len__(self):
        return len(self.waiting) + len(self.claimed)

    async def add(self, fields):
        async with self.changed:
            await self.changed.wait_for(lambda: len(self) < LONGEST)
            self.waiting[next(self.numbers)] = fields
            self.changed.notify_all()

    async def read(self, most):
        async with self.changed:
            await self.changed.wait_for(lambda: self.waiting or self.closed)
            found = [(number, self.waiting.pop(number)) for number in list(self.waiting)[:most]]
            self.claimed.update(found)
            return found

    async def acknowledge(self, number):
        async with self.changed:
            self.acknowledged += 1
            del self.claimed[number]
            self.changed.notify_all()

    async def close(self):
        async with self.changed:
            self.closed = True
            self.changed.notify_all()


async def main():
    stream, stop = Stream(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def connection(reader, writer):
        try:
            while True:
                name, *arguments = await receive(reader)
                await send(writer, await getattr(stream, name)(*arguments))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    print(f"{stream.acknowledged} acknowledged, {len(stream)} in the stream", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
