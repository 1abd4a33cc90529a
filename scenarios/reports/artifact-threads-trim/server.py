"""A server of artifacts: each request reads a repository's objects in a thread of the loop's executor."""

import asyncio
import collections
import hashlib
import json
import os
import zlib
from concurrent.futures import ThreadPoolExecutor

OBJECTS = 2_400
OBJECT_BYTES = 16_000
THREADS = 15
ROUNDS = 8

pack = os.urandom(1 << 20)
listings = collections.OrderedDict()


def read_object(number):
    at = number * 7919 % (len(pack) - OBJECT_BYTES)
    return bytes(memoryview(pack)[at : at + OBJECT_BYTES])


def commit(repository, revision):
    """All objects of the revision at once, as the library does; what stays is a listing."""
    objects = [read_object(revision + number) for number in range(OBJECTS)]
    names = [hashlib.sha256(one).hexdigest() for one in objects]
    total = sum(zlib.crc32(one) for one in objects)
    listings[repository, revision % 50] = json.dumps(names[::6])
    while len(listings) > 600:
        listings.popitem(last=False)
    return total


class Server:
    def __init__(self):
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self.served = 0
        self.log = collections.deque(maxlen=100)

    async def handle(self, repository, revision):
        loop = asyncio.get_running_loop()
        total = await loop.run_in_executor(self.executor, commit, repository, revision)
        self.served += 1
        return total


async def main():
    """Traffic rises through the day: each hour has one more client at a time."""
    server = Server()
    for clients in range(1, THREADS + 1):
        for turn in range(ROUNDS):
            await asyncio.gather(*[server.handle(client, clients * 100 + turn) for client in range(clients)])
            server.log.append(zlib.crc32(zlib.compress(pack)))
        print(f"{clients} clients, {server.served} requests, {len(listings)} listings", flush=True)
    server.executor.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
