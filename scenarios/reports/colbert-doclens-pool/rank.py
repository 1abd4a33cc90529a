"""Batch ranking: an index in the parent, and a pool that maps what was found to passages."""

from multiprocessing import Pool

import numpy as np
import torch

PASSAGES = 4_200_000
PARTS = 20
DIMENSIONS = 64
QUERIES = 4800
WORKERS = 3


class Index:
    """The lengths of all passages as they were read from the parts' JSON, and which passage an embedding is of."""

    def __init__(self):
        random = np.random.default_rng(0)
        size = PASSAGES // PARTS
        self.doclens = [random.integers(300, 2_000, size).tolist() for _ in range(PARTS)]
        self.emb2pid = torch.arange(8_000_000, dtype=torch.int32) // 2
        self.centroids = torch.from_numpy(random.standard_normal((4096, DIMENSIONS), np.float32))


index = Index()


def uniq(task):
    """The passages of the nearest embeddings, weighted by how long the passages of the query's part are."""
    part, embeddings = task
    lengths = index.doclens[part]
    longest = 0
    total = 0
    for length in lengths:
        total += length
        if length > longest:
            longest = length
    passages = torch.unique(index.emb2pid[embeddings])
    weights = 1 / (1 + torch.log1p(passages.float() / longest))
    return passages[weights.topk(50).indices].tolist(), total / len(lengths)


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    pool = Pool(WORKERS)
    seen = set()
    for first in range(0, QUERIES, WORKERS):
        tasks = []
        for _ in range(WORKERS):
            query = torch.from_numpy(random.standard_normal((32, DIMENSIONS), np.float32))
            near = (query @ index.centroids.T).topk(64).indices.flatten()
            tasks.append((first * PARTS // QUERIES, (near * 1949) % len(index.emb2pid)))
        results = pool.map(uniq, tasks, chunksize=1)
        mean = results[-1][1]
        for passages, _ in results:
            seen.update(passages)
        if first % 300 == 0:
            print(f"{first} queries: {len(seen)} passages, mean length {mean:.0f}", flush=True)
    pool.close()
    pool.join()


if __name__ == "__main__":
    main()
