"""A dataset in compressed chunks, and the cache through which they are read"""

import collections
import os
import zlib

import numpy as np

SAMPLES, LENGTH = 64, 16 * 1024


class Storage:
    """The files of a dataset"""

    def __init__(self, folder):
        self.folder = folder

    def path(self, key):
        return os.path.join(self.folder, key)

    def __setitem__(self, key, value):
        with open(self.path(key), "wb") as file:
            file.write(value)

    def __getitem__(self, key):
        with open(self.path(key), "rb") as file:
            return file.read()


def memory_of_machine():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class LRUCache:
    """Holds the chunks that were used last, up to half of the memory"""

    def __init__(self, storage, size=None):
        self.storage = storage
        self.size = size or memory_of_machine() // 2
        self.used = 0
        self.chunks = collections.OrderedDict()

    def __getitem__(self, key):
        if key in self.chunks:
            self.chunks.move_to_end(key)
            return self.chunks[key]
        chunk = np.frombuffer(zlib.decompress(self.storage[key]), dtype=np.uint8).astype(np.float32)
        while self.chunks and self.used + chunk.nbytes > self.size:
            self.used -= self.chunks.popitem(last=False)[1].nbytes
        self.chunks[key] = chunk
        self.used += chunk.nbytes
        return chunk


class Dataset:
    def __init__(self, storage, chunks):
        self.cache = LRUCache(storage)
        self.chunks = chunks

    def __len__(self):
        return self.chunks * SAMPLES

    def __getitem__(self, index):
        chunk = self.cache[f"chunk-{index // SAMPLES:05d}"].reshape(SAMPLES, LENGTH)
        return chunk[index % SAMPLES].copy()


def write_dataset(storage, chunks):
    """Genotypes of individuals, which are 0, 1 or 2"""
    source = np.random.default_rng(0)
    for number in range(chunks):
        genotypes = source.integers(0, 3, SAMPLES * LENGTH, dtype=np.uint8)
        storage[f"chunk-{number:05d}"] = zlib.compress(genotypes.tobytes(), 1)
