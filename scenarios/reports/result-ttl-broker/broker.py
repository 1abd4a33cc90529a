"""A broker: queues of jobs, and values that expire"""

import argparse
import asyncio
import collections
import heapq
import json
import time

import wire

CYCLE_S = 0.1


class Broker:
    def __init__(self, clients):
        self.values, self.expiries = {}, []
        self.queues = collections.defaultdict(asyncio.Queue)
        self.waiting = collections.defaultdict(list)
        self.clients, self.done = clients, asyncio.Event()

    def setex(self, key, value, ttl):
        expiry = time.monotonic() + ttl
        self.values[key] = (value, expiry)
        heapq.heappush(self.expiries, (expiry, key))
        for future in self.waiting.pop(key, ()):
            if not future.done():
                future.set_result(None)

    def active_expire_cycle(self):
        now = time.monotonic()
        while self.expiries and self.expiries[0][0] <= now:
            _, key = heapq.heappop(self.expiries)
            if key in self.values and self.values[key][1] <= now:
                del self.values[key]
        asyncio.get_running_loop().call_later(CYCLE_S, self.active_expire_cycle)

    async def answer(self, header, body):
        command = header["command"]
        if command == "push":
            self.queues[header["queue"]].put_nowait(header["job"])
        elif command == "pop":
            return await self.queues[header["queue"]].get(), b""
        elif command == "setex":
            self.setex(header["key"], body, header["ttl"])
        elif command == "wait":
            if header["key"] not in self.values:
                future = asyncio.get_running_loop().create_future()
                self.waiting[header["key"]].append(future)
                await future
            return {}, self.values[header["key"]][0]
        return {"keys": len(self.values)}, b""

    async def serve(self, reader, writer):
        greeted = False
        try:
            while True:
                head, size = wire.LENGTHS.unpack(await reader.readexactly(wire.LENGTHS.size))
                header = json.loads(await reader.readexactly(head))
                body = await reader.readexactly(size)
                greeted = greeted or header["command"] == "hello"
                writer.write(wire.pack(*await self.answer(header, body)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            if greeted:
                self.clients -= 1
                if self.clients == 0:
                    self.done.set()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--clients", type=int, required=True)
    arguments = parser.parse_args()
    broker = Broker(arguments.clients)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    with open(arguments.port_file, "w") as file:
        file.write(f"{server.sockets[0].getsockname()[1]}\n")
    broker.active_expire_cycle()
    await broker.done.wait()
    server.close()
    print(f"{len(broker.values)} results at the end", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
