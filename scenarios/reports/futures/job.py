"""Images come from a pool of processes; the futures, with their results, are kept to the end."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


def process_image(seed):
    time.sleep(0.2)
    return np.random.default_rng(seed).random((300, 900))


def main():
    done = 0
    with ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(process_image, seed) for seed in range(int(SECONDS * 10))]
        for future in as_completed(futures):
            done += future.result().shape[0]


if __name__ == "__main__":
    main()
