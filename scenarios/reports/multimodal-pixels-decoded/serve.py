"""An engine and its worker: the engine preprocesses images of all sizes, the worker encodes them on the GPU"""

import multiprocessing
import pickle
import time

import numpy as np
import torch
from torch import nn

from serial_utils import Decoder, Encoder

SECONDS = 18.0
PATCH = 1176  # values of a patch: 2 frames x 3 colours x 14 x 14
BUDGET = 160_000  # patches that are encoded together
SMALLEST, LARGEST = 600, 70_000  # patches of a thumbnail, and of a long document


class VisionEncoder(nn.Module):
    def __init__(self, width=512, layers=3):
        super().__init__()
        self.embed = nn.Linear(PATCH, width)
        blocks = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, pixel_values):
        hidden = self.embed(pixel_values)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        return hidden.mean(dim=0)


class Worker:
    def __init__(self, connection):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.connection, self.decoder = connection, Decoder()
        self.encoder = VisionEncoder().to("cuda", torch.bfloat16).eval()
        self.requests = {}

    @torch.inference_mode()
    def execute(self, request_id, pixel_values):
        self.requests[request_id] = pixel_values
        pixels = pixel_values.to("cuda", non_blocking=True)
        return self.encoder(pixels).float().norm().item()

    def finish(self, request_ids):
        for request_id in request_ids:
            del self.requests[request_id]

    def loop(self):
        while (message := self.decoder.receive(self.connection)) is not None:
            request_id, tensor = message
            if request_id < 0:
                self.finish(tensor.tolist())
                self.connection.send(len(self.requests))
            else:
                self.execute(request_id, tensor)
        torch.cuda.synchronize()


def run_worker(connection):
    Worker(connection).loop()


class Engine:
    def __init__(self):
        self.encoder, self.next_id = Encoder(), 0
        self.rng = np.random.default_rng(0)
        self.pixels = memoryview(self.rng.integers(0, 60, 2 * LARGEST * PATCH, dtype=np.uint8))
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        self.worker = context.Process(target=run_worker, args=(there,), name="Worker_TP0")
        self.worker.start()
        there.close()

    def patches(self, progress):
        """The sweep goes from thumbnails to documents"""
        typical = SMALLEST * (LARGEST / SMALLEST) ** progress
        return int(np.clip(typical * self.rng.lognormal(0.0, 0.2), SMALLEST, LARGEST))

    def schedule(self, progress):
        """Requests until the budget of the encoder is spent; all are finished when their batch is"""
        left, batch = BUDGET, []
        while (patches := self.patches(progress)) <= left:
            data = self.pixels[: 2 * patches * PATCH]
            self.encoder.send(self.connection, self.next_id, "bfloat16", (patches, PATCH), data)
            batch.append(self.next_id)
            self.next_id += 1
            left -= patches
        done = np.array(batch, np.int64).tobytes()
        self.encoder.send(self.connection, -1, "int64", (len(batch),), done)
        return len(batch), self.connection.recv()

    def close(self):
        self.connection.send_bytes(pickle.dumps(None))
        self.worker.join()


def main():
    engine = Engine()
    engine.schedule(0.0)
    started, step = time.monotonic(), 0
    while (progress := (time.monotonic() - started) / SECONDS) < 1.0:
        finished, running = engine.schedule(progress)
        step += 1
        if step % 5 == 0:
            print(f"step {step}: {finished} requests finished, {running} running", flush=True)
    engine.close()
    print(f"{engine.next_id} requests", flush=True)


if __name__ == "__main__":
    main()
