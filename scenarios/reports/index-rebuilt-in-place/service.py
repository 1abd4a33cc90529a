"""A recommender's similarity service: a process answers queries from an index file, another one rebuilds the file"""

import multiprocessing
import os
import sys
import time

import numpy as np

ITEMS, WIDTH, BUCKETS = 60_000, 64, 256
BUILD_S = 16
INDEX = "items.ann"


def write_index(path, vectors, planes):
    """A header, the hyperplanes, and the vectors of the items in the order of their numbers"""
    with open(path, "wb") as file:
        file.write(np.array([len(vectors), WIDTH], dtype=np.int64).tobytes())
        file.write(planes.tobytes())
        for start in range(0, len(vectors), 4096):
            file.write(vectors[start : start + 4096].tobytes())


class Index:
    """The index of a file, mapped into memory; only the buckets are kept outside it"""

    def __init__(self, path):
        self.path, self.loaded = path, os.stat(path).st_mtime_ns
        count = int(np.fromfile(path, dtype=np.int64, count=2)[0])
        bits = BUCKETS.bit_length() - 1
        planes = np.memmap(path, np.float32, "r", offset=16, shape=(bits, WIDTH))
        self.vectors = np.memmap(path, np.float32, "r", offset=16 + bits * WIDTH * 4, shape=(count, WIDTH))
        self.planes = np.array(planes)
        codes = self._codes(self.vectors)
        self.buckets = [np.flatnonzero(codes == bucket) for bucket in range(BUCKETS)]

    def _codes(self, vectors):
        return ((vectors @ self.planes.T) > 0) @ (1 << np.arange(len(self.planes)))

    def get_nns_by_vector(self, vector, count):
        near = int(self._codes(vector[None])[0])
        candidates = np.concatenate([self.buckets[near ^ flip] for flip in (0, 1, 2, 4, 8, 16, 32, 64, 128)])
        scores = self.vectors[candidates] @ vector
        return candidates[np.argsort(-scores)[:count]].tolist()


def answer(connection):
    index = Index(INDEX)
    rng = np.random.default_rng(5)
    while True:
        request = connection.recv()
        if request is None:
            return
        if request == "reload":
            index = Index(INDEX)
            connection.send(len(index.vectors))
            continue
        vector = index.vectors[request] + rng.normal(0, 0.1, WIDTH).astype(np.float32)
        connection.send(index.get_nns_by_vector(vector, 20))


def rebuild(vectors, planes):
    """Trains the vectors on, drops the items that are no longer sold, and writes the index anew"""
    rng = np.random.default_rng(6)
    until = time.monotonic() + BUILD_S
    while time.monotonic() < until:
        chosen = rng.integers(0, len(vectors), 2048)
        users = rng.normal(0, 1, (512, WIDTH)).astype(np.float32)
        error = vectors[chosen] @ users.T - rng.random((2048, 512), dtype=np.float32)
        vectors[chosen] -= 1e-5 * (error @ users)
    sold = np.sort(rng.choice(len(vectors), len(vectors) * 2 // 3, replace=False))
    write_index(INDEX, vectors[sold], planes)
    print(f"index rebuilt with {len(sold)} items", flush=True)


def main():
    rng = np.random.default_rng(4)
    vectors = rng.normal(0, 1, (ITEMS, WIDTH)).astype(np.float32)
    planes = rng.normal(0, 1, (BUCKETS.bit_length() - 1, WIDTH)).astype(np.float32)
    write_index(INDEX, vectors, planes)
    ours, theirs = multiprocessing.Pipe()
    query = multiprocessing.Process(target=answer, args=(theirs,), name="query")
    fetch = multiprocessing.Process(target=rebuild, args=(vectors, planes), name="fetch", daemon=True)
    query.start()
    fetch.start()
    theirs.close()
    loaded, answered, count, until = os.stat(INDEX).st_mtime_ns, 0, ITEMS, time.monotonic() + 30
    try:
        while time.monotonic() < until:
            ours.send(int(rng.integers(0, count)))
            ours.recv()
            answered += 1
            if answered % 2000 == 0 and not fetch.is_alive() and os.stat(INDEX).st_mtime_ns != loaded:
                loaded = os.stat(INDEX).st_mtime_ns
                ours.send("reload")
                count = ours.recv()
        ours.send(None)
    except (EOFError, ConnectionError):
        query.join()
        print(f"after {answered} answers the query process ended with {query.exitcode}", flush=True)
        fetch.join()
        sys.exit(1)
    query.join()
    fetch.join()


if __name__ == "__main__":
    main()
