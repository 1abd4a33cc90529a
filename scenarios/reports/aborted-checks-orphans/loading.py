"""A loader whose workers prepare batches, and wait at a pipe for the next request."""

import multiprocessing
import os

import numpy as np

PART_MB = 32


def worker_loop(number, pipe, pids):
    """Reads its part of the data once, then answers requests for batches."""
    with open(pids, "a") as file:
        file.write(f"{os.getpid()}\n")
    rng = np.random.default_rng(number)
    part = rng.integers(0, 255, (PART_MB * 340, 3, 32, 32), np.uint8)
    while True:
        rows = pipe.recv()
        if rows is None:
            return
        pipe.send(part[rows % len(part)].astype(np.float32) / 255)


class DataLoader:
    def __init__(self, batch_size, num_workers, pids):
        self.batch_size, self.ends = batch_size, []
        context = multiprocessing.get_context("fork")
        for number in range(num_workers):
            end, pipe = context.Pipe()
            context.Process(target=worker_loop, args=(number, pipe, pids), daemon=True).start()
            self.ends.append(end)
        self.rng = np.random.default_rng(0)

    def request(self, end):
        end.send(self.rng.integers(0, 1 << 20, self.batch_size))

    def __iter__(self):
        for end in self.ends:
            self.request(end)
        turn = 0
        while True:
            end = self.ends[turn % len(self.ends)]
            batch = end.recv()
            self.request(end)
            turn += 1
            yield batch
