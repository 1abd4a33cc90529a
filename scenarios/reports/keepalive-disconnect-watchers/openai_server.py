"""A completion server: asyncio in front, the engine in a thread; one JSON document a line, connections are kept alive"""

import asyncio
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

torch.set_num_threads(1)
VOCABULARY, WIDTH, TOKENS, TOP = 2000, 128, 48, 900


class RequestOutput:
    """What the engine hands back: the tokens, and the log probabilities of the best candidates at each step"""

    def __init__(self, number, prompt):
        self.number, self.prompt = number, prompt
        self.token_ids, self.finished, self.aborted = [], False, False
        self.logprobs = np.zeros((TOKENS, TOP), dtype=np.float32)

    def abort(self):
        self.aborted = True


class Engine:
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.embedding = torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.1
        self.mixer = torch.randn(WIDTH, WIDTH, generator=generator) * 0.1
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="engine")

    @torch.inference_mode()
    def _generate(self, promise):
        state = self.embedding[torch.tensor(promise.prompt)].mean(0)
        for step in range(TOKENS):
            if promise.aborted:
                break
            state = torch.tanh(state @ self.mixer + state)
            logits = torch.log_softmax(self.embedding @ state, 0)
            best = torch.topk(logits, TOP)
            promise.logprobs[step] = best.values.numpy()
            promise.token_ids.append(int(best.indices[0]))
        promise.finished = True

    async def generate(self, promise):
        await asyncio.get_running_loop().run_in_executor(self.executor, self._generate, promise)


class OpenAIServer:
    def __init__(self):
        self.engine, self.served = Engine(), 0

    async def await_disconnected(self, writer, promise):
        while not writer.is_closing():
            await asyncio.sleep(1)
        promise.abort()

    async def completion(self, request, writer):
        self.served += 1
        promise = RequestOutput(self.served, request["prompt"])
        asyncio.create_task(self.await_disconnected(writer, promise))
        await self.engine.generate(promise)
        return {"id": promise.number, "tokens": promise.token_ids, "logprob": float(promise.logprobs[:, 0].mean())}

    async def connection(self, reader, writer):
        try:
            while line := await reader.readline():
                answer = await self.completion(json.loads(line), writer)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
                if self.served % 200 == 0:
                    print(f"{self.served} requests served", flush=True)
        finally:
            writer.close()


async def main(path, seconds):
    server = OpenAIServer()
    listener = await asyncio.start_server(server.connection, "127.0.0.1", 0)
    with open(path + ".new", "w") as file:
        file.write(str(listener.sockets[0].getsockname()[1]))
    os.rename(path + ".new", path)
    await asyncio.sleep(seconds)
    listener.close()
    server.engine.executor.shutdown()


if __name__ == "__main__":
    started = time.monotonic()
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
    print(f"stopped after {time.monotonic() - started:.0f} s", flush=True)
