"""Batches of a tokenized corpus, loaded by an event loop in a thread some way ahead of the training"""

import asyncio
import queue
import threading

import numpy as np


class TokenStore:
    """Rows of tokens, decoded from blocks when they are asked for"""

    def __init__(self, rows, length, words):
        self.rows, self.length, self.words = rows, length, words

    async def get_batch(self, indices):
        tokens = np.empty((len(indices), self.length), np.int32)
        for place, index in enumerate(indices):
            numbers = np.random.default_rng(index)
            tokens[place] = numbers.zipf(1.4, self.length) % self.words
            if place % 8 == 0:
                await asyncio.sleep(0)
        weights = np.ones(tokens.shape, np.float32)
        weights[:, -1] = 0.0
        segments = np.cumsum(tokens == 0, axis=1, dtype=np.int32)
        return {"tokens": tokens, "loss_weights": weights, "segment_ids": segments}


class DataLoader:
    def __init__(self, store, batch_size, max_buffered_batches, prefetch_size):
        self.store, self.batch_size = store, batch_size
        self.max_buffered_batches, self.prefetch_size = max_buffered_batches, prefetch_size

    def __iter__(self):
        return DataLoaderIterator(self)


class DataLoaderIterator:
    def __init__(self, loader):
        self.loader, self.stopped = loader, threading.Event()
        self.batches = queue.Queue(maxsize=loader.max_buffered_batches)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.fill()), daemon=True)
        self.thread.start()

    async def fill(self):
        size, number, pending = self.loader.batch_size, 0, []
        while not self.stopped.is_set():
            while len(pending) < self.loader.prefetch_size:
                rows = [row % self.loader.store.rows for row in range(number * size, (number + 1) * size)]
                pending.append(asyncio.ensure_future(self.loader.store.get_batch(rows)))
                number += 1
            batch = await pending.pop(0)
            while not self.stopped.is_set():
                try:
                    self.batches.put(batch, timeout=0.2)
                    break
                except queue.Full:
                    continue
        for task in pending:
            task.cancel()

    def __next__(self):
        return self.batches.get()

    def stop(self):
        self.stopped.set()
        self.thread.join()
