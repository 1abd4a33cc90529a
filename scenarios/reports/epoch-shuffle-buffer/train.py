"""A dataset in chunks is streamed through a shuffle buffer, which is filled before the first batch of each epoch."""

import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

EPOCHS, CHUNKS, CHUNK_SAMPLES = 3, 44, 100


class Chunk:
    """A chunk of compressed images; stands in for one object of the storage."""

    def __init__(self, number):
        self.rng = np.random.default_rng(number)

    def decompress(self):
        for _ in range(CHUNK_SAMPLES):
            coarse = self.rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
            yield {"images": np.kron(coarse, np.ones((16, 16, 1), np.uint8)), "labels": int(self.rng.integers(10))}


class ShuffleBuffer:
    def __init__(self, size_bytes):
        self.size_bytes, self.held, self.buffer = size_bytes, 0, []

    def exchange(self, sample):
        size = sample["images"].nbytes
        if self.held + size <= self.size_bytes:
            self.buffer.append(sample)
            self.held += size
            return None
        position = random.randrange(len(self.buffer))
        chosen, self.buffer[position] = self.buffer[position], sample
        return chosen

    def drain(self):
        random.shuffle(self.buffer)
        while self.buffer:
            yield self.buffer.pop()


class ShufflingStream(IterableDataset):
    def __init__(self, buffer_size_mb=400):
        self.buffer_size_mb = buffer_size_mb

    def __iter__(self):
        buffer = ShuffleBuffer(self.buffer_size_mb << 20)
        for number in random.sample(range(CHUNKS), CHUNKS):
            for sample in Chunk(number).decompress():
                chosen = buffer.exchange(sample)
                if chosen is not None:
                    yield chosen
        yield from buffer.drain()


def main():
    torch.set_num_threads(1)
    random.seed(0)
    loader = DataLoader(ShufflingStream(), batch_size=32, num_workers=1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        start = time.monotonic()
        for step, batch in enumerate(loader):
            if step == 0:
                print(f"epoch {epoch}: first batch after {time.monotonic() - start:.1f} s", flush=True)
            images = batch["images"].permute(0, 3, 1, 2).float() / 255
            loss = nn.functional.cross_entropy(model(images), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 40 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
