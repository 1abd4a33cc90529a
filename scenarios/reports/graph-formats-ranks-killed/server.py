"""The server of a node: writes the partition's structure for its trainers, and answers pulls of node features"""

import os
import threading
from multiprocessing.connection import Listener

import numpy as np

NODES, FEATURES = 400_000, 64


def write_partition(folder):
    rng = np.random.default_rng(11)
    degrees = rng.integers(10, 51, NODES)
    indptr = np.zeros(NODES + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    np.save(os.path.join(folder, "indptr.npy"), indptr)
    indices = np.lib.format.open_memmap(
        os.path.join(folder, "indices.npy"), mode="w+", dtype=np.int64, shape=(int(indptr[-1]),)
    )
    for first in range(0, len(indices), 1 << 20):
        part = indices[first : first + (1 << 20)]
        part[:] = rng.integers(0, NODES, len(part))
    indices.flush()


def node_features():
    rng = np.random.default_rng(12)
    features = np.empty((NODES, FEATURES), np.float16)
    for first in range(0, NODES, 50_000):
        features[first : first + 50_000] = rng.standard_normal((50_000, FEATURES), np.float32)
    return features


def answer(connection, features):
    try:
        while True:
            connection.send(features[connection.recv()])
    except (EOFError, OSError):
        connection.close()


def main():
    folder = os.environ["PART_FOLDER"]
    write_partition(folder)
    features = node_features()
    listener = Listener(os.path.join(folder, "pull"), "AF_UNIX", backlog=8)
    print(f"server: {NODES} nodes, ready", flush=True)
    while True:
        connection = listener.accept()
        threading.Thread(target=answer, args=(connection, features), daemon=True).start()


if __name__ == "__main__":
    main()
