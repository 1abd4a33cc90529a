"""A loader in one process: a thread per iterator reads the packed file and stays some batches ahead."""

import threading
from queue import Queue

import numpy as np
import torch


class PackedImages:
    """Images of one size in one file, mapped."""

    def __init__(self, path, count, side=32):
        self.count, self.side = count, side
        rng = np.random.default_rng(0)
        with open(path, "wb") as file:
            for _ in range(count // 100):
                file.write(rng.integers(0, 255, (100, side, side, 3), np.uint8).tobytes())
        self.pixels = np.memmap(path, np.uint8, "r", shape=(count, side, side, 3))

    def __len__(self):
        return self.count


class EpochIterator(threading.Thread):
    def __init__(self, loader, order):
        super().__init__(daemon=True)
        self.loader, self.order = loader, order
        self.ready = Queue(loader.batches_ahead)
        self.start()

    def run(self):
        size = self.loader.batch_size
        for start in range(0, len(self.order) - size + 1, size):
            self.ready.put(self.loader.pipeline(self.order[start : start + size]))
        self.ready.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        batch = self.ready.get()
        if batch is None:
            raise StopIteration
        return batch


class Loader:
    def __init__(self, images, batch_size, batches_ahead=3, seed=0):
        self.images, self.batch_size, self.batches_ahead = images, batch_size, batches_ahead
        self.rng = np.random.default_rng(seed)

    def pipeline(self, rows):
        batch = torch.from_numpy(self.images.pixels[np.sort(rows)]).permute(0, 3, 1, 2).float()
        batch = (batch - 128) / 64
        if self.rng.random() < 0.5:
            batch = batch.flip(3)
        return batch.contiguous(), torch.from_numpy(rows % 10)

    def __iter__(self):
        return EpochIterator(self, self.rng.permutation(len(self.images)))

    def __len__(self):
        return len(self.images) // self.batch_size
