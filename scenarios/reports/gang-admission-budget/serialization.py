"""Saves the arrays of this process's shard; what is admitted and not yet committed is limited by a budget"""

import json
import os
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

CHUNK = 1 << 20


class WriteBudget:
    """Admits arrays while their bytes fit; one that is larger than all of it goes alone"""

    def __init__(self, limit):
        self.limit, self.admitted = limit, 0
        self.condition = threading.Condition()

    def acquire(self, size):
        with self.condition:
            self.condition.wait_for(lambda: not self.admitted or self.admitted + size <= self.limit)
            self.admitted += size

    def release(self, size):
        with self.condition:
            self.admitted -= size
            self.condition.notify_all()


class PendingArray:
    """An array on its way into the checkpoint: its snapshot, the chunks of the store, and what they are encoded to"""

    def __init__(self, name, tensor):
        self.name = name
        self.snapshot = tensor.detach().clone().numpy().reshape(-1)
        self.size = self.snapshot.nbytes
        self.chunks = [self.snapshot[i : i + CHUNK].copy() for i in range(0, len(self.snapshot), CHUNK)]
        self.shuffled, self.encoded = [], []

    def encode(self):
        for chunk in self.chunks:
            # The bytes of the same place of all values lie together, which makes them smaller
            self.shuffled.append(np.ascontiguousarray(chunk.view(np.uint8).reshape(-1, chunk.itemsize).T))
            self.encoded.append(zlib.compress(self.shuffled[-1], 1))
        return self

    def commit(self, folder):
        with open(os.path.join(folder, self.name), "wb") as file:
            file.writelines(self.encoded)
        return {"name": self.name, "chunks": [len(piece) for piece in self.encoded]}


class Checkpointer:
    def __init__(self, folder, rank, budget, threads=2):
        self.folder, self.rank = folder, rank
        self.budget, self.pool = WriteBudget(budget), ThreadPoolExecutor(threads)

    def save(self, step, arrays):
        """Blocks until every write is admitted; the arrays are committed in their order, and then the manifest"""
        folder = os.path.join(self.folder, f"step-{step}", f"process-{self.rank}")
        os.makedirs(folder)
        futures = []
        for name, tensor in arrays.items():
            self.budget.acquire(tensor.numel() * tensor.element_size())
            futures.append(self.pool.submit(PendingArray(name, tensor).encode))
        manifest = []
        for pending in [future.result() for future in futures]:
            manifest.append(pending.commit(folder))
            self.budget.release(pending.size)
        with open(os.path.join(folder, "manifest.json"), "w") as file:
            json.dump(manifest, file)
        return sum(sum(entry["chunks"]) for entry in manifest)
