"""Writes the sample files of the benchmark"""

import os
import sys

import numpy as np

folder, count = sys.argv[1], int(sys.argv[2])
os.makedirs(folder, exist_ok=True)
generator = np.random.default_rng(9)
sample = generator.integers(0, 255, (400, 400), dtype=np.uint8)
for number in range(count):
    np.save(os.path.join(folder, f"sample_{number:04d}.npy"), np.roll(sample, number, axis=1))
