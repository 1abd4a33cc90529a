"""Writes a checkpoint of half precision: files with the weights of two layers each, and an index of their places"""

import json
import os
import sys

import numpy as np

LAYERS, WIDTH, VOCABULARY = 12, 1024, 8192


def main(folder):
    source, index = np.random.default_rng(3), {}
    shapes = {"embedding": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        shapes[f"{layer}.up"] = (3 * WIDTH, WIDTH)
        shapes[f"{layer}.down"] = (3 * WIDTH, WIDTH)
    pairs = [[f"{layer}.{part}" for layer in (n, n + 1) for part in ("up", "down")] for n in range(0, LAYERS, 2)]
    for number, names in enumerate([["embedding"], *pairs]):
        path, at = f"weights-{number:02}.bin", 0
        with open(os.path.join(folder, path), "wb") as file:
            for name in names:
                data = (source.standard_normal(shapes[name], np.float32) / 32).astype(np.float16)
                index[name] = {"file": path, "offset": at, "shape": list(shapes[name])}
                at += file.write(data.tobytes())
    with open(os.path.join(folder, "index.json"), "w") as file:
        json.dump(index, file)


if __name__ == "__main__":
    main(sys.argv[1])
