"""A message broker: tasks that wait, tasks that a worker has and did not acknowledge yet, and results"""

import asyncio
import collections
import itertools
import json
import sys


class Broker:
    def __init__(self):
        self.ready = collections.deque()
        self.unacknowledged = {}
        self.results = {}
        self.tags = itertools.count(1)
        self.changed = asyncio.Condition()

    async def on_publish(self, task):
        async with self.changed:
            self.ready.append({**task, "redelivered": 0})
            self.changed.notify_all()
        return {"ok": True}

    async def on_consume(self):
        async with self.changed:
            await self.changed.wait_for(lambda: self.ready)
            tag, task = next(self.tags), self.ready.popleft()
            self.unacknowledged[tag] = task
        return {"tag": tag, "task": task}

    async def on_acknowledge(self, tag, result):
        async with self.changed:
            self.results[self.unacknowledged.pop(tag)["chunk"]] = result
            self.changed.notify_all()
        return {"ok": True}

    async def on_reject(self, tag):
        async with self.changed:
            task = self.unacknowledged.pop(tag)
            self.ready.appendleft({**task, "redelivered": task["redelivered"] + 1})
            self.changed.notify_all()
        return {"ok": True}

    async def on_wait(self, count, timeout):
        try:
            await asyncio.wait_for(self.until(count), timeout)
        except asyncio.TimeoutError:
            pass
        return {"results": len(self.results)}

    async def until(self, count):
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.results) >= count)

    async def handle(self, reader, writer):
        while line := await reader.readline():
            request = json.loads(line)
            answer = await getattr(self, "on_" + request.pop("op"))(**request)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main():
    broker = Broker()
    server = await asyncio.start_server(broker.handle, "127.0.0.1", 0)
    with open(sys.argv[1], "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
