"""Batches of positions from a stream, and a data set of a number of them that prefetches"""

import queue
import threading
import time

import numpy as np
import torch

FEATURES, ACTIVE, SKIPPING_S = 4096, 30, 0.06


class SparseBatchProvider:
    """The active features of both sides for positions, of which it skips a part, as the native loader does"""

    def __init__(self, batch_size, seed=0):
        self.batch_size = batch_size
        self.source = np.random.default_rng(seed)

    def __iter__(self):
        return self

    def __next__(self):
        until = time.monotonic() + SKIPPING_S
        shape = (self.batch_size, ACTIVE)
        while True:
            white = self.source.integers(0, FEATURES, shape, dtype=np.int64)
            black = self.source.integers(0, FEATURES, shape, dtype=np.int64)
            score = self.source.normal(0.0, 1.0, (self.batch_size, 1)).astype(np.float32)
            if time.monotonic() > until:
                break
        return torch.from_numpy(white), torch.from_numpy(black), torch.sigmoid(torch.from_numpy(score))


class FixedNumBatchesDataset(torch.utils.data.Dataset):
    def __init__(self, dataset, num_batches):
        super().__init__()
        self.iter = iter(dataset)
        self.num_batches = num_batches
        self._prefetch_queue = queue.Queue(maxsize=100)
        self._prefetch_thread = None
        self._stop_prefetching = threading.Event()

    def _prefetch_worker(self):
        while not self._stop_prefetching.is_set():
            item = next(self.iter)
            while not self._stop_prefetching.is_set():
                try:
                    self._prefetch_queue.put(item, timeout=1.0)
                    break
                except queue.Full:
                    continue

    def _start_prefetching(self):
        if self._prefetch_thread is None:
            self._prefetch_thread = threading.Thread(target=self._prefetch_worker, daemon=True)
            self._prefetch_thread.start()

    def __len__(self):
        return self.num_batches

    def __getitem__(self, index):
        self._start_prefetching()
        return self._prefetch_queue.get(timeout=300.0)

    def close(self):
        self._stop_prefetching.set()
        if self._prefetch_thread is not None:
            self._prefetch_thread.join()
