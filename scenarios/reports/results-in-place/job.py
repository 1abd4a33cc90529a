"""A second stage computes features with NumPy alone, into a list that was made beforehand."""

import sys
import time

import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


def stage_two(n):
    features = np.empty(n, dtype=object)
    end = time.monotonic() + SECONDS
    for i in range(n):
        x = np.random.rand(600, 600)
        features[i] = np.linalg.inv(x @ x + np.eye(600)).astype(np.float32)[:400]
        if time.monotonic() > end:
            break
    return features


stage_two(100_000)
