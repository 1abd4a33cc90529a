"""Train a small detector; a reader process hands over batches as files in shared memory"""

import argparse
import multiprocessing
import os
import queue
import time
import traceback
import zlib

import numpy as np
import torch

torch.set_num_threads(1)
BATCH, SIDE = 8, 128
SECONDS = 90.0
SHM = "/dev/shm"


class SharedBatch:
    """The name and shape of a batch that lies in shared memory"""

    def __init__(self, name, shape, boxes):
        self.name, self.shape, self.boxes = name, shape, boxes

    @classmethod
    def store(cls, number, images, boxes):
        name = os.path.join(SHM, f"paddle_{os.getpid()}_{number}")
        with open(name, "wb", buffering=0) as file:
            view = memoryview(images).cast("B")
            while len(view):
                view = view[file.write(view) :]
        return cls(name, images.shape, boxes)

    def tensor(self):
        return torch.from_numpy(np.fromfile(self.name, dtype=np.float32).reshape(self.shape))

    def release(self):
        os.unlink(self.name)


def reader(batches, stop, seed):
    """Decodes images and puts their batches into the queue until it is stopped"""
    generator = np.random.default_rng(seed)
    base = (np.add.outer(np.arange(SIDE * 4), np.arange(SIDE * 4)) % 251).astype(np.uint8)
    packed = [zlib.compress(np.roll(base, shift, axis=0).tobytes(), 6) for shift in range(16)]
    number = 0
    try:
        while not stop.wait(0.035):
            images = np.empty((BATCH, 3, SIDE, SIDE), dtype=np.float32)
            for place in range(BATCH):
                raw = zlib.decompress(packed[int(generator.integers(len(packed)))])
                image = np.frombuffer(raw, dtype=np.uint8).reshape(SIDE * 4, SIDE * 4)
                top = int(generator.integers(SIDE * 3))
                images[place] = image[top : top + SIDE, :SIDE].astype(np.float32) / 255 - 0.5
            boxes = int(generator.integers(0, 12))
            batches.put(SharedBatch.store(number, images, boxes))
            number += 1
    except OSError:
        traceback.print_exc()
        batches.cancel_join_thread()
        os._exit(1)


class DataLoader:
    def __init__(self, depth=3):
        context = multiprocessing.get_context("fork")
        self.batches, self.stop = context.Queue(depth), context.Event()
        self.process = context.Process(target=reader, args=(self.batches, self.stop, 3), name="reader", daemon=True)
        self.process.start()

    def __iter__(self):
        while True:
            try:
                yield self.batches.get(timeout=2.0)
            except queue.Empty:
                if self.process.exitcode is not None:
                    raise RuntimeError(f"DataLoader process exited with {self.process.exitcode}") from None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--min-boxes", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=4), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 1),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader, started, steps = DataLoader(), time.monotonic(), 0
    for batch in loader:
        if batch.boxes < arguments.min_boxes:  # too few to learn from
            continue
        images = batch.tensor()
        batch.release()
        loss = (model(images).mean() - batch.boxes / 12).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            print(f"step {steps}: loss {loss.item():.4f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break
    loader.stop.set()


if __name__ == "__main__":
    main()
