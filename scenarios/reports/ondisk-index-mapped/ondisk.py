"""An inverted file index on disk: lists are written by blocks, merged into one file, and searched as a mapped file."""

import os
import time

import numpy as np

DIMENSIONS = 128
LISTS = 512
VECTORS = 900_000
BLOCK = 60_000
PROBES = 8
SECONDS = 30


def build(path, centroids):
    """Vectors grouped by list, in one file; the offsets of the lists are what memory keeps."""
    random = np.random.default_rng(1)
    sizes = np.full(LISTS, VECTORS // LISTS)
    with open(path, "wb") as file:
        for first in range(0, LISTS, LISTS * BLOCK // VECTORS):
            for number in range(first, min(first + LISTS * BLOCK // VECTORS, LISTS)):
                noise = random.standard_normal((sizes[number], DIMENSIONS), np.float32)
                file.write((centroids[number] + 0.3 * noise).astype(np.float32).tobytes())
    return np.concatenate([[0], np.cumsum(sizes)])


def search(queries, centroids, offsets, vectors):
    nearest = np.argsort(((queries[:, None] - centroids[None]) ** 2).sum(-1), axis=1)[:, :PROBES]
    found = []
    for query, lists in zip(queries, nearest, strict=True):
        best = (np.inf, -1)
        for number in lists:
            block = vectors[offsets[number] : offsets[number + 1]]
            distances = np.square(block - query).sum(1)
            at = int(distances.argmin())
            best = min(best, (float(distances[at]), int(offsets[number]) + at))
        found.append(best)
    return found


def main():
    random = np.random.default_rng(0)
    centroids = random.standard_normal((LISTS, DIMENSIONS), np.float32)
    offsets = build("merged_index.ivfdata", centroids)
    vectors = np.memmap("merged_index.ivfdata", np.float32, "r").reshape(-1, DIMENSIONS)
    start, searched = time.monotonic(), 0
    while time.monotonic() - start < SECONDS:
        reach = min(1.0, (time.monotonic() - start) / 24)
        queries = centroids[random.integers(0, max(8, int(LISTS * reach)), 4)]
        distances = [distance for distance, _ in search(queries + 0.1, centroids, offsets, vectors)]
        searched += len(queries)
        if searched % 400 == 0:
            with open("/proc/self/statm") as file:
                resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            print(f"{searched} queries, mean {np.mean(distances):.2f}, RES {resident >> 20} MiB", flush=True)
    del vectors
    os.remove("merged_index.ivfdata")


if __name__ == "__main__":
    main()
