"""A server that batches requests to an image model: each waits in the runner's queue until a batch is complete."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

SECONDS = 22.0
MAX_QUEUE_SIZE = 100_000
MAX_BATCH_SIZE = 4
SIDE = 256


class Generator(nn.Module):
    """Turns horses into zebras."""

    def __init__(self, width=20, blocks=3):
        super().__init__()
        layers = [nn.Conv2d(3, width, 7, padding=3), nn.ReLU()]
        for _ in range(blocks):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.InstanceNorm2d(width), nn.ReLU()]
        self.model = nn.Sequential(*layers, nn.Conv2d(width, 3, 7, padding=3), nn.Tanh())

    def forward(self, x):
        return self.model(x)


class HandlingError(Exception):
    pass


class ModelRunner:
    def __init__(self):
        self.queue, self.queue_lock, self.needs_processing = [], asyncio.Lock(), asyncio.Event()
        self.model = Generator().eval()
        self.executor = ThreadPoolExecutor(1)
        self.finished = 0

    async def process_input(self, data):
        our_task = {"done_event": asyncio.Event(), "input": data, "time": time.monotonic()}
        async with self.queue_lock:
            if len(self.queue) >= MAX_QUEUE_SIZE:
                raise HandlingError("I'm too busy")
            self.queue.append(our_task)
            self.needs_processing.set()
        await our_task["done_event"].wait()
        return our_task["output"]

    @torch.inference_mode()
    def run_model(self, batch):
        return self.model(torch.stack(batch))

    async def model_runner(self):
        loop = asyncio.get_running_loop()
        while True:
            await self.needs_processing.wait()
            async with self.queue_lock:
                to_process, self.queue = self.queue[:MAX_BATCH_SIZE], self.queue[MAX_BATCH_SIZE:]
                if not self.queue:
                    self.needs_processing.clear()
            batch = [task["input"] for task in to_process]
            results = await loop.run_in_executor(self.executor, self.run_model, batch)
            for task, result in zip(to_process, results):
                task["output"] = result.mean().item()
                task["done_event"].set()
                self.finished += 1


class Uploads:
    """Stands in for the clients: raw bytes of photos, as their requests hold them."""

    def __init__(self):
        self.rng = np.random.default_rng(5)
        self.base = self.rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)

    def decode(self):
        image = np.kron(np.roll(self.base, self.rng.integers(8)), np.ones((SIDE // 8, SIDE // 8, 1), np.uint8))
        noise = self.rng.integers(0, 24, (SIDE, SIDE, 3), dtype=np.uint8)
        return torch.from_numpy((image // 2 + noise).astype(np.float32)).permute(2, 0, 1).div(127.5).sub(1).contiguous()


async def image_route(runner, answered):
    answer = await runner.process_input(await asyncio.to_thread(runner.uploads.decode))
    answered.append(answer)


async def main():
    torch.set_num_threads(1)
    runner, answered, requests = ModelRunner(), [], set()
    runner.uploads = Uploads()
    serving = asyncio.create_task(runner.model_runner())
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        burst = [asyncio.create_task(image_route(runner, answered)) for _ in range(2)]
        for request in burst:
            requests.add(request)
            request.add_done_callback(requests.discard)
        number += len(burst)
        await asyncio.sleep(0.04)
        if number % 100 == 0:
            print(f"{number} requests, {runner.finished} answered", flush=True)
    serving.cancel()
    runner.executor.shutdown(wait=True)
    for request in requests:
        request.cancel()


if __name__ == "__main__":
    asyncio.run(main())
