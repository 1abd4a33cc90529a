"""Train a classifier from a file of pages, each rank with its own loader."""

import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

PER_PAGE, SIDE = 162, 128
PAGE_BYTES = PER_PAGE * (1 + SIDE * SIDE * 3)


def blur(image):
    """Blur an image a few times, each time a little more."""
    out = image.astype(np.float32) / 255
    for width in (8, 16, 24, 32):
        spectrum = np.fft.rfft2(out)
        spectrum[:, SIDE // 2 - width : SIDE // 2 + width] *= 0.5
        out = np.fft.irfft2(spectrum).astype(np.float32)
    return out


class ProcessCache:
    """Reads pages when they are first needed. With in_memory they stay for the next epoch."""

    def __init__(self, path, in_memory):
        self.file = open(path, "rb")
        self.pages = os.path.getsize(path) // PAGE_BYTES
        self.in_memory = in_memory
        self.loaded = {}

    def page(self, number):
        if number not in self.loaded:
            if not self.in_memory:
                self.loaded.clear()
            self.file.seek(number * PAGE_BYTES)
            data = np.fromfile(self.file, dtype=np.uint8, count=PAGE_BYTES)
            self.loaded[number] = data.reshape(PER_PAGE, -1)
        return self.loaded[number]


class Loader:
    """Batches in an order that is random by pages and inside them; each rank takes its part of every page."""

    def __init__(self, path, batch, rank, world):
        self.cache = ProcessCache(path, in_memory=True)
        self.batch, self.rank, self.world = batch, rank, world

    def epoch(self, seed):
        rng = np.random.default_rng(seed)
        for number in rng.permutation(self.cache.pages):
            page = self.cache.page(number)
            mine = rng.permutation(PER_PAGE)[self.rank :: self.world]
            for start in range(0, len(mine) - self.batch + 1, self.batch):
                rows = page[mine[start : start + self.batch]]
                images = [blur(r) for r in rows[:, 1:].reshape(-1, 3, SIDE, SIDE)]
                yield torch.from_numpy(np.stack(images)), torch.from_numpy(rows[:, 0].astype(np.int64))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(3 * 16 * 16, 100))
    loader = Loader(args.data, 9, rank, world)
    step = 0
    for epoch in range(2):
        for images, labels in loader.epoch(epoch):
            loss = nn.functional.cross_entropy(model(images), labels)
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter -= 0.05 / world * parameter.grad
            step += 1
            if rank == 0 and step % 60 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
