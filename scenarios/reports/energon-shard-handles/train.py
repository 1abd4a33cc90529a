"""Train on samples from many indexed shards in random order; the reader keeps the handles of the last shards open"""

import collections
import os
import struct
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SHARDS, PER_SHARD, FEATURES = 480, 24, 2048
SECONDS = 25.0


def write_shards(folder):
    os.makedirs(folder, exist_ok=True)
    generator = np.random.default_rng(1)
    pool = [generator.standard_normal(FEATURES, dtype=np.float32).tobytes() for _ in range(64)]
    for shard in range(SHARDS):
        offset, offsets, bodies = 0, [], []
        for sample in range(PER_SHARD):
            body = struct.pack("<I", (shard + sample) % 10) + pool[(shard * 7 + sample) % len(pool)]
            offsets.append(offset)
            bodies.append(body)
            offset += len(body)
        with open(os.path.join(folder, f"shard_{shard:04d}.tar"), "wb") as file:
            file.write(b"".join(bodies))
        with open(os.path.join(folder, f"shard_{shard:04d}.tar.idx"), "wb") as file:
            file.write(struct.pack(f"<{PER_SHARD + 1}Q", *offsets, offset))


class ShardReader:
    def __init__(self, path):
        with open(path + ".idx", "rb") as file:
            index = file.read()
        self.offsets = struct.unpack(f"<{len(index) // 8}Q", index)
        self.file = open(path, "rb")

    def read(self, number):
        start, end = self.offsets[number : number + 2]
        return os.pread(self.file.fileno(), end - start, start)

    def close(self):
        self.file.close()


class ShardReaderCache:
    """The readers of the shards that were used last"""

    def __init__(self, folder, capacity=112):
        self.folder, self.capacity = folder, capacity
        self.readers = collections.OrderedDict()

    def get(self, shard):
        reader = self.readers.pop(shard, None)
        if reader is None:
            if len(self.readers) >= self.capacity:
                self.readers.popitem(last=False)[1].close()
            reader = ShardReader(os.path.join(self.folder, f"shard_{shard:04d}.tar"))
        self.readers[shard] = reader
        return reader


class JoinedDataset(Dataset):
    def __init__(self, folder):
        self.cache = ShardReaderCache(folder)

    def __len__(self):
        return SHARDS * PER_SHARD

    def __getitem__(self, index):
        body = self.cache.get(index // PER_SHARD).read(index % PER_SHARD)
        label = struct.unpack_from("<I", body)[0]
        return np.frombuffer(body, dtype=np.float32, offset=4).copy(), label


class BlockShuffle(torch.utils.data.Sampler):
    """Shuffles the shards, and draws for a while from few of them at a time"""

    def __init__(self, parallel_shards=2, draws=384):
        self.parallel_shards, self.draws = parallel_shards, draws

    def __iter__(self):
        while True:
            for shards in torch.randperm(SHARDS).split(self.parallel_shards):
                picked = shards[torch.randint(len(shards), (self.draws,))] * PER_SHARD
                yield from (picked + torch.randint(PER_SHARD, (self.draws,))).tolist()


def main():
    write_shards("shards")
    torch.manual_seed(0)
    dataset = JoinedDataset("shards")
    sampler = BlockShuffle()
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=2, multiprocessing_context="fork")
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    started = time.monotonic()
    for step, (features, labels) in enumerate(loader, 1):
        loss = torch.nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break


if __name__ == "__main__":
    main()
