"""Small baseline inversion, patch by patch: a pool of forked workers inverts blocks of pixels of the patch."""

import multiprocessing

import numpy as np

PARALLEL = 3
INTERFEROGRAMS = 90
IMAGES = 30
# Rows of each patch: the last ones are the widest of the scene.
PATCHES = [1200, 1300, 1400, 1500, 1700, 2000, 2400, 2900]

G = None


def design():
    random = np.random.default_rng(0)
    matrix = np.zeros((INTERFEROGRAMS, IMAGES), np.float32)
    for row in range(INTERFEROGRAMS):
        first, second = sorted(random.choice(IMAGES + 1, 2, replace=False))
        matrix[row, first:second] = 1
    return matrix


def invert(task):
    """One worker's block: unwrapped phases of all interferograms, increments by least squares, and residuals."""
    number, rows = task
    random = np.random.default_rng(number)
    phases = random.standard_normal((rows * 100, INTERFEROGRAMS), np.float32)
    weights = np.abs(phases) + 1
    inverse = np.linalg.pinv(G)
    increments = phases @ inverse.T
    residuals = phases - increments @ G.T
    for _ in range(6):
        increments += ((residuals / weights) @ inverse.T) * 0.1
        residuals = phases - increments @ G.T
    return float(increments.mean()), float(np.sqrt((residuals**2).mean()))


def main():
    global G
    G = design()
    for number, rows in enumerate(PATCHES):
        pool = multiprocessing.get_context("fork").Pool(PARALLEL)
        tasks = [(number * 100 + block, rows // PARALLEL) for block in range(PARALLEL * 2)]
        results = pool.map(invert, tasks, 1)
        pool.close()
        pool.join()
        rms = np.mean([residual for _, residual in results])
        print(f"patch {number + 1}/{len(PATCHES)} of {rows} rows: residual {rms:.4f}", flush=True)


if __name__ == "__main__":
    main()
