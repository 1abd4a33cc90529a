"""The controller: hands tasks to engines, and its hub records each task with its buffers for delayed retrieval"""

import argparse
import asyncio
import pickle
import time


async def receive(reader):
    size = int.from_bytes(await reader.readexactly(8), "big")
    return pickle.loads(await reader.readexactly(size))


async def send(writer, message):
    data = pickle.dumps(message, protocol=5)
    writer.write(len(data).to_bytes(8, "big") + data)
    await writer.drain()


class DictDB:
    """The records of tasks; when there are too many, or their buffers are too large, the oldest tenth goes"""

    def __init__(self, record_limit=1024, size_limit=320 << 20, cull_fraction=0.1):
        self.record_limit, self.size_limit, self.cull_fraction = record_limit, size_limit, cull_fraction
        self.records, self.size, self.culled = {}, 0, 0

    def add_record(self, identifier, record):
        self.records[identifier] = record
        self.account(len(record["buffers"]))

    def update_record(self, identifier, buffers):
        if identifier in self.records:
            self.records[identifier].update(result_buffers=buffers, completed=time.time())
            self.account(len(buffers))

    def account(self, size):
        self.size += size
        if len(self.records) > self.record_limit or self.size > self.size_limit:
            self.cull()

    def cull(self):
        for identifier in list(self.records)[: max(1, int(len(self.records) * self.cull_fraction))]:
            record = self.records.pop(identifier)
            self.size -= len(record["buffers"]) + len(record.get("result_buffers", b""))
            self.culled += 1


class Controller:
    def __init__(self):
        self.db = DictDB()
        self.tasks, self.results, self.left = asyncio.Queue(), asyncio.Queue(), asyncio.Queue()
        self.engines = 0
        self.over = asyncio.Event()

    async def serve(self, reader, writer):
        hello = await receive(reader)
        if hello == "engine":
            self.engines += 1
            await self.serve_engine(reader, writer)
            self.left.put_nowait(None)
        else:
            await self.serve_client(reader, writer)
        writer.close()

    async def serve_engine(self, reader, writer):
        while (task := await self.tasks.get()) is not None:
            await send(writer, task)
            identifier, buffers = await receive(reader)
            self.db.update_record(identifier, buffers)
            await self.results.put((identifier, buffers))
        await send(writer, None)

    async def serve_client(self, reader, writer):
        while (task := await receive(reader)) is not None:
            identifier, buffers = task
            self.db.add_record(identifier, {"buffers": buffers, "submitted": time.time()})
            await self.tasks.put(task)
            if identifier >= 4:
                await send(writer, await self.results.get())
        for _ in range(self.engines):
            await self.tasks.put(None)
        self.over.set()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection-file", required=True)
    options = parser.parse_args()
    controller = Controller()
    server = await asyncio.start_server(controller.serve, "127.0.0.1", 0)
    with open(options.connection_file, "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await controller.over.wait()
    for _ in range(controller.engines):
        await controller.left.get()
    print(f"{len(controller.db.records)} records of {controller.db.size >> 20} MiB, {controller.db.culled} culled", flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
