"""Samples of text and patches of pictures, made into batches of nearly equal cost by way of a buffer"""

import numpy as np

PATCH, PATCHES, WORDS = 768, 32, 4000


class DynamicBatchDataset:
    """
    The buffer fills while batches are taken, four samples for each that leaves, until it is full; a batch takes
    those samples that fit its budget of tokens.
    """

    def __init__(self, buffer_size, token_budget):
        self.buffer_size, self.token_budget = buffer_size, token_budget

    def start(self, worker, workers):
        self.position, self.workers = worker, workers
        self.rng = np.random.default_rng(worker)
        self.buffer = []

    def read(self):
        rng = np.random.default_rng(1000 + self.position)
        self.position += self.workers
        tokens = rng.integers(0, WORDS, int(rng.integers(24, 120)), np.int32)
        return {"tokens": tokens, "patches": rng.integers(0, 255, (PATCHES, PATCH), np.uint8)}

    def __iter__(self):
        while len(self.buffer) < 64:
            self.buffer.append(self.read())
        while True:
            batch, used = [], 0
            while used < self.token_budget:
                place = int(self.rng.integers(0, len(self.buffer)))
                self.buffer[place], self.buffer[-1] = self.buffer[-1], self.buffer[place]
                batch.append(self.buffer.pop())
                used += len(batch[-1]["tokens"])
                for _ in range(4):
                    if len(self.buffer) < self.buffer_size:
                        self.buffer.append(self.read())
            yield batch

    def state_dict(self):
        return {"position": self.position, "rng": self.rng.bit_generator.state, "buffer": self.buffer}
