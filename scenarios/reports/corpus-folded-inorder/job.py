"""Computes the ground truth of a search benchmark by brute force"""

import os
import subprocess
import sys
import time

import torch
from compute import Corpus, Neighbours, Readers

torch.set_num_threads(1)
FILES, ROWS, WIDTH, QUERIES, COUNT, IO_WORKERS = 134, 5000, 256, 96, 10, 4
WARM_S, COLD_S = 0.55, 25.5
STORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "store.py")


def main():
    store = subprocess.Popen(
        [sys.executable, STORE, str(ROWS), str(WIDTH), str(WARM_S), str(COLD_S)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        corpus = Corpus(f"http://127.0.0.1:{int(store.stdout.readline())}", FILES, WIDTH)
        torch.manual_seed(0)
        neighbours = Neighbours(torch.nn.functional.normalize(torch.randn(QUERIES, WIDTH), dim=1), COUNT)
        readers, begin = Readers(corpus, IO_WORKERS), time.monotonic()
        for number in range(FILES):
            neighbours.fold(readers.next_in_order(number))
            if number % 20 == 2:
                print(f"folded {number + 1} of {FILES} files after {time.monotonic() - begin:.1f} s", flush=True)
        print(f"{neighbours.seen} rows, best score {neighbours.scores.max().item():.4f}", flush=True)
    finally:
        store.terminate()
        store.wait()
        store.stdout.close()


if __name__ == "__main__":
    main()
