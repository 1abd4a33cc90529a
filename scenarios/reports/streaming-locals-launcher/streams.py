"""A dataset in shards, whose processes on a node agree on its state in shared memory."""

import os
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import torch
from torch.utils.data import IterableDataset

WIDTH, ROWS = 256, 2000


def write_shards(folder, count, seed):
    for n in range(count):
        rows = np.random.default_rng((seed, n)).integers(0, 250, (ROWS, WIDTH), np.uint8)
        np.save(os.path.join(folder, f"shard.{n:05d}.npy"), rows)


class World:
    def __init__(self):
        self.rank = int(os.environ.get("RANK", "0"))
        self.ranks = int(os.environ.get("WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))

    @property
    def is_local_leader(self):
        return self.local_rank == 0


class LocalDataset(IterableDataset):
    """Reads shards without asking anybody."""

    def __init__(self, folder, shards):
        self.folder, self.shards = folder, shards

    def __iter__(self):
        for n in self.shards:
            for row in np.load(os.path.join(self.folder, f"shard.{n:05d}.npy")):
                ids = torch.from_numpy(row.astype(np.int64))
                yield ids[:-1], ids[1:]


class StreamingDataset(LocalDataset):
    """Announces its folder to the other processes of the node, so that nobody else uses it."""

    def __init__(self, folder, shards):
        self.world = World()
        super().__init__(folder, shards[self.world.rank :: self.world.ranks])
        name, text = f"{os.environ['STREAM_PREFIX']}_000000_locals", folder.encode()
        if self.world.is_local_leader:
            self.locals = SharedMemory(name, True, len(text))
            self.locals.buf[: len(text)] = text
        else:
            self.locals = SharedMemory(name)
            if bytes(self.locals.buf[: len(text)]) != text:
                raise ValueError("Reused local directory")

    def close(self):
        self.locals.close()
        if self.world.is_local_leader:
            self.locals.unlink()
