"""A small stand-in for HDF5: datasets in compressed chunks, and a chunk cache of the open file"""

import collections
import os
import threading
import zlib

import numpy as np

CHUNK = 4


class ChunkCache:
    def __init__(self, rdcc_nbytes):
        self.rdcc_nbytes = rdcc_nbytes
        self.entries = collections.OrderedDict()
        self.nbytes = 0
        self.evicted = []
        self.owner = os.getpid()
        self.lock = threading.Lock()

    def get(self, key):
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
                return self.entries[key]
        return None

    def put(self, key, chunk):
        with self.lock:
            self.entries[key] = chunk
            self.nbytes += chunk.nbytes
            while self.nbytes > self.rdcc_nbytes:
                _, last = self.entries.popitem(last=False)
                self.nbytes -= last.nbytes
                self.evicted.append(last)
            self.flush()

    def flush(self):
        if os.getpid() == self.owner:
            self.evicted.clear()


class File:
    def __init__(self, path, rdcc_nbytes=4 << 20):
        self.fd = os.open(path, os.O_RDONLY)
        self.cache = ChunkCache(rdcc_nbytes)
        with open(path + ".index", "rb") as file:
            index = np.load(file)
            self.offsets, self.sizes = index[0], index[1]
            self.shape = tuple(int(number) for number in np.load(file))

    def __len__(self):
        return len(self.sizes) * CHUNK

    def read(self, number):
        key = number // CHUNK
        chunk = self.cache.get(key)
        if chunk is None:
            stored = os.pread(self.fd, int(self.sizes[key]), int(self.offsets[key]))
            chunk = np.frombuffer(zlib.decompress(stored), dtype=np.float16).reshape(CHUNK, *self.shape).copy()
            self.cache.put(key, chunk)
        return chunk[number % CHUNK].copy()


def write(path, chunks, shape):
    offsets, sizes = [], []
    with open(path, "wb") as file:
        for chunk in chunks:
            stored = zlib.compress(chunk.astype(np.float16).tobytes(), 1)
            offsets.append(file.tell())
            sizes.append(len(stored))
            file.write(stored)
    with open(path + ".index", "wb") as file:
        np.save(file, np.array([offsets, sizes], dtype=np.int64))
        np.save(file, np.array(shape, dtype=np.int64))
