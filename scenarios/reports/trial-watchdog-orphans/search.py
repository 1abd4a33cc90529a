"""One trial of a search: a ProcessPoolExecutor whose workers each prepare their folds of the data, then score candidates."""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

FOLDS = None


def prepare(rows):
    global FOLDS
    rng = np.random.default_rng(os.getpid())
    FOLDS = [rng.standard_normal((rows // 4, 96)) for _ in range(4)]


def score(candidate):
    rng = np.random.default_rng(candidate)
    weights = rng.standard_normal(96)
    errors = []
    for fold in FOLDS:
        target = np.tanh(fold[:, 0])
        for _ in range(3):
            weights -= 0.01 * fold.T @ (fold @ weights - target) / len(fold)
        errors.append(float(np.mean((fold @ weights - target) ** 2)))
    time.sleep(0.1)
    return candidate, min(errors)


def main():
    trial = int(sys.argv[1])
    best = None
    with ProcessPoolExecutor(max_workers=2, initializer=prepare, initargs=(110_000,)) as executor:
        futures = [executor.submit(score, trial * 100_000 + n) for n in range(5000)]
        for future in as_completed(futures):
            candidate, error = future.result()
            if best is None or error < best[1]:
                best = candidate, error
                print(f"trial {trial}: candidate {candidate}, error {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
