"""Trains a classifier of photographs, which a pipeline reads and decodes two batches ahead"""

import math
import os
import queue
import struct
import tempfile
import threading
import time
import zlib

import numpy as np
import torch

torch.set_num_threads(1)
SECONDS, BATCH_S = 38.0, 0.1
BATCH, DEPTH, CLASSES, CROP = 12, 2, 6, 64
SIZES = ((1200, 1800), (700, 1000), (400, 600))
COUNTS = (12, 18, 30)
HEADER = struct.Struct("!III")


def write_photographs(folder):
    generator = np.random.default_rng(6)
    for number, size in enumerate(size for size, count in zip(SIZES, COUNTS) for _ in range(count)):
        height, width = size
        rows = generator.integers(0, 24, (4, width, 3), np.uint8)
        image = np.tile(rows, (height // 4, 1, 1))
        image[: height // 2, :, number % 3] += np.uint8(40 + 20 * (number % CLASSES))
        with open(os.path.join(folder, f"{number % CLASSES}-{number:04d}.img"), "wb") as file:
            file.write(HEADER.pack(*image.shape) + zlib.compress(image, 1))


class SlotBuffer:
    """The decoded image at one place of a batch"""

    def __init__(self):
        self.data = np.empty(0, np.uint8)

    def decode(self, path):
        with open(path, "rb") as file:
            shape = HEADER.unpack(file.read(HEADER.size))
            raw = np.frombuffer(zlib.decompress(file.read()), np.uint8)
        size = math.prod(shape)
        if size > len(self.data):
            self.data = np.empty(size, np.uint8)
        self.data[:size] = raw
        return self.data[:size].reshape(shape)


class Pipeline(threading.Thread):
    def __init__(self, folder):
        super().__init__(daemon=True)
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.free, self.ready, self.epochs = queue.Queue(), queue.Queue(), 0
        for _ in range(DEPTH):
            self.free.put([SlotBuffer() for _ in range(BATCH)])

    def run(self):
        generator = np.random.default_rng(8)
        while True:
            order = generator.permutation(len(self.paths))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                slots = self.free.get()
                if slots is None:
                    return
                paths = [self.paths[index] for index in order[start:start + BATCH]]
                images = [slot.decode(path) for slot, path in zip(slots, paths)]
                labels = torch.tensor([int(os.path.basename(path)[0]) for path in paths])
                self.ready.put((slots, images, labels))
            self.epochs += 1

    def next_batch(self):
        slots, images, labels = self.ready.get()
        resized = torch.cat([resize(torch.from_numpy(image)) for image in images])
        self.free.put(slots)
        return resized, labels


def resize(image):
    step = image.shape[0] // CROP
    small = image[::step, ::step].permute(2, 0, 1)[None].float() / 255
    return torch.nn.functional.interpolate(small, size=(CROP, CROP), mode="bilinear", antialias=True)


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(128, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        write_photographs(folder)
        pipeline = Pipeline(folder)
        pipeline.start()
        started, batches = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + BATCH_S
            images, labels = pipeline.next_batch()
            while True:
                shift = int(torch.randint(0, 8, (1,)))
                loss = torch.nn.functional.cross_entropy(model(torch.roll(images, shift, 3)), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            batches += 1
            if batches % 40 == 0:
                print(f"batch {batches}, epoch {pipeline.epochs}, loss {loss.item():.4f}", flush=True)
        pipeline.free.put(None)
        pipeline.join(timeout=10)


if __name__ == "__main__":
    main()
