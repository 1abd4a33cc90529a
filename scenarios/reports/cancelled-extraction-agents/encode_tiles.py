"""Encodes the tiles of a slide that fall to this rank"""

import os
import sys
import time

import numpy as np

SECONDS, LAYERS, WIDTH, TILES = 150.0, 6, 2048, 64


def main():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    generator = np.random.default_rng(0)
    encoder = [generator.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5 for _ in range(LAYERS)]
    started, tile = time.monotonic(), rank
    while time.monotonic() - started < SECONDS:
        features = generator.standard_normal((TILES, WIDTH), dtype=np.float32)
        for weight in encoder:
            features = np.maximum(features @ weight, 0.0)
        tile += world_size * TILES
        print(f"{sys.argv[1]} rank {rank}: tile {tile}, {features.mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
