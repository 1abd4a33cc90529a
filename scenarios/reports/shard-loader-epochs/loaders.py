"""Shards of a text corpus: a manager process reads the next shard while the current one is batched."""

import multiprocessing as mp

import numpy as np

SHARD_TOKENS = 4_000_000


def read_shard(seed):
    """A shard of a byte-level corpus, tokenized."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, SHARD_TOKENS // 4)
    return np.repeat(letters, 4).astype(np.int32)


def manage_shards(order, requests, batches, batch_size, length):
    """Serves batches of the shard in memory, and has the next one ready."""
    current, following = read_shard(order[0]), None
    position = served = 0
    while True:
        requests.get()
        if following is None:
            following = read_shard(order[(served + 1) % len(order)])
        size = batch_size * length
        if position + size > len(current):
            current, following, position, served = following, None, 0, served + 1
        batches.put(current[position : position + size].reshape(batch_size, length).copy())
        position += size


class ShardLoader:
    def __init__(self, shards, batch_size=16, length=64, steps=60, seed=0):
        self.steps = steps
        order = np.random.default_rng(seed).permutation(shards).tolist()
        self.requests, self.batches = mp.Queue(), mp.Queue()
        self.manager = mp.Process(
            target=manage_shards, args=(order, self.requests, self.batches, batch_size, length), daemon=True
        )
        self.manager.start()

    def __len__(self):
        return self.steps

    def __iter__(self):
        self.requests.put("next")
        for step in range(self.steps):
            if step + 1 < self.steps:
                self.requests.put("next")
            yield self.batches.get()
