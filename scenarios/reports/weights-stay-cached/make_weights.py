"""Writes the weights of a model to a file, layer after layer"""

import os
import sys

import numpy as np
from infer import LAYERS, WIDTH


def main():
    path, source = sys.argv[1], np.random.default_rng(int(sys.argv[2]))
    with open(path, "wb") as file:
        for _ in range(LAYERS):
            file.write((source.standard_normal((WIDTH, WIDTH), np.float32) / 32).tobytes())
            file.flush()
            os.fsync(file.fileno())
    print(f"{os.path.basename(path)}: {os.path.getsize(path) >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
