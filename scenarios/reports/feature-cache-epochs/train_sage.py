"""Node classification on a graph whose features stay on disk, with a cache of features in host memory"""

import collections
import os
import tempfile
import time

import numpy as np
import torch

torch.set_num_threads(1)
NODES, WIDTH, CLASSES, FANOUT = 400_000, 128, 16, 8
CACHED = 340_000
SEEDS = 1500
RUN_S = 38


class DiskBasedFeature:
    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDONLY)
        self.row = WIDTH * 4

    def read(self, nodes):
        parts = [os.pread(self.descriptor, self.row, node * self.row) for node in nodes.tolist()]
        return np.frombuffer(b"".join(parts), dtype=np.float32).reshape(len(nodes), WIDTH)


class CPUCachedFeature:
    """First in, first out, with a fixed number of rows"""

    def __init__(self, fallback, rows):
        self.fallback = fallback
        self.rows = np.empty((rows, WIDTH), dtype=np.float32)
        self.owner = np.full(rows, -1, dtype=np.int64)
        self.slot = np.full(NODES, -1, dtype=np.int64)
        self.hand = 0
        self.counts = collections.Counter()

    def read(self, nodes):
        slots = self.slot[nodes]
        values = np.empty((len(nodes), WIDTH), dtype=np.float32)
        hit = slots >= 0
        values[hit] = self.rows[slots[hit]]
        missed = nodes[~hit]
        values[~hit] = fetched = self.fallback.read(missed)
        self.insert(missed, fetched)
        self.counts.update(hits=int(hit.sum()), misses=len(missed))
        return values

    def insert(self, nodes, values):
        places = (self.hand + np.arange(len(nodes))) % len(self.rows)
        evicted = self.owner[places]
        self.slot[evicted[evicted >= 0]] = -1
        self.rows[places] = values
        self.owner[places] = nodes
        self.slot[nodes] = places
        self.hand = (self.hand + len(nodes)) % len(self.rows)


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.neighbours = torch.nn.Linear(WIDTH, 128), torch.nn.Linear(WIDTH, 128)
        self.head = torch.nn.Linear(128, CLASSES)

    def forward(self, own, neighbours):
        return self.head(torch.relu(self.own(own) + self.neighbours(neighbours.mean(1))))


def write_features(path):
    generator = np.random.default_rng(1)
    with open(path, "wb") as file:
        for _ in range(NODES // 20_000):
            file.write(generator.standard_normal((20_000, WIDTH), dtype=np.float32).tobytes())


def main():
    generator = np.random.default_rng(4)
    labels = generator.integers(0, CLASSES, NODES)
    edges = generator.integers(0, NODES, (NODES, FANOUT), dtype=np.int32)
    torch.manual_seed(0)
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "paper_feat.bin")
        write_features(path)
        feature = CPUCachedFeature(DiskBasedFeature(path), CACHED)
        end, step = time.monotonic() + RUN_S, 0
        while time.monotonic() < end:
            seeds = generator.choice(NODES, SEEDS, replace=False)
            nodes, inverse = np.unique(np.concatenate([seeds, edges[seeds].ravel()]), return_inverse=True)
            values = torch.from_numpy(feature.read(nodes))
            inverse = torch.from_numpy(inverse.reshape(-1))
            own, around = values[inverse[:SEEDS]], values[inverse[SEEDS:]].view(SEEDS, FANOUT, WIDTH)
            loss = torch.nn.functional.cross_entropy(model(own, around), torch.from_numpy(labels[seeds]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                share = feature.counts["misses"] / sum(feature.counts.values())
                print(f"step {step}: loss {loss.item():.3f}, cpu_cache_miss={share:.3f}", flush=True)
                feature.counts.clear()


if __name__ == "__main__":
    main()
