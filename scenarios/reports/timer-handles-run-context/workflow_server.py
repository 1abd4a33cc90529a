"""Workflows that index documents and ask a model; many runs share one connector"""

import asyncio
import contextvars
import itertools
import json
import time
import zlib

import numpy as np

SECONDS = 26.0
IDLE_S = 3600
PARALLEL = 2
RUN = contextvars.ContextVar("run")


class RunContext:
    """What the steps of a run share"""

    def __init__(self, number, question):
        self.number, self.question = number, question
        self.documents = None
        self.events = []

    def emit(self, name):
        self.events.append((name, time.monotonic()))


class Lease:
    def __init__(self, key):
        self.key, self.used = key, time.monotonic()


class Connector:
    """Connections to the model, and who used them last"""

    def __init__(self, address):
        self.address = address
        self.free, self.leases = [], {}

    async def request(self, key, payload):
        loop = asyncio.get_running_loop()
        if key not in self.leases:
            self.leases[key] = loop.call_later(IDLE_S, self.cleanup, Lease(key))
        reader, writer = self.free.pop() if self.free else await asyncio.open_connection(*self.address)
        writer.write(json.dumps(payload).encode() + b"\n")
        await writer.drain()
        answer = json.loads(await reader.readline())
        self.free.append((reader, writer))
        return answer

    def cleanup(self, lease):
        self.leases.pop(lease.key, None)

    def close(self):
        for _, writer in self.free:
            writer.close()


async def model(reader, writer):
    """The model's side: an answer for each line"""
    while line := await reader.readline():
        prompt = json.loads(line)["prompt"]
        words = sorted(prompt.split(), key=len)[-5:]
        writer.write(json.dumps({"text": " ".join(words), "tokens": len(prompt) // 4}).encode() + b"\n")
        await writer.drain()
    writer.close()


def load_documents(seed):
    """Embeddings of the documents of a question, best of some compressed shards"""
    rng = np.random.default_rng(seed)
    shards = [rng.standard_normal((1500, 256), dtype=np.float32) for _ in range(3)]
    sizes = [len(zlib.compress(np.round(shard, 1).tobytes(), 7)) for shard in shards]
    return shards[int(np.argmin(sizes))]


def retrieve(documents, seed):
    query = np.random.default_rng(seed + 1).standard_normal(documents.shape[1], dtype=np.float32)
    scores = documents @ query
    return [int(i) for i in np.argsort(scores)[-8:]]


async def ingest():
    run = RUN.get()
    run.documents = await asyncio.get_running_loop().run_in_executor(None, load_documents, run.number)
    run.emit("ingested")


async def answer(connector):
    run = RUN.get()
    best = retrieve(run.documents, run.number)
    prompt = f"{run.question} given " + " ".join(f"passage{i}" for i in best)
    reply = await connector.request(f"run-{run.number}", {"prompt": prompt})
    run.emit("answered")
    return reply["text"]


async def workflow(number, connector):
    RUN.set(RunContext(number, f"what changed in release {number % 40}"))
    await ingest()
    return await answer(connector)


async def serve(numbers, connector, started):
    for number in numbers:
        if time.monotonic() - started > SECONDS:
            break
        text = await asyncio.create_task(workflow(number, connector), name=f"run-{number}")
        if number % 20 == 0:
            print(f"run {number}: {text}", flush=True)


async def main():
    server = await asyncio.start_server(model, "127.0.0.1", 0)
    connector = Connector(server.sockets[0].getsockname()[:2])
    numbers, started = itertools.count(1), time.monotonic()
    await asyncio.gather(*(serve(numbers, connector, started) for _ in range(PARALLEL)))
    connector.close()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
