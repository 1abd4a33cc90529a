"""A volume's chunks go through an LRU that counts bytes; of a view it counts the header only, so nothing is evicted."""

import collections
import os
import sys
import tempfile
import time
import zlib

import numpy as np

SECONDS = 32.0
CHUNK = (64, 64, 32)


class LRU:
    def __init__(self, size, size_in_bytes=False):
        self.size = size
        self.size_in_bytes = size_in_bytes
        self.nbytes = 0
        self.queue = collections.OrderedDict()

    def getsizeof(self, value):
        if isinstance(value, tuple):
            return sum(sys.getsizeof(part) for part in value)
        return sys.getsizeof(value)

    def is_oversized(self):
        return (self.nbytes if self.size_in_bytes else len(self.queue)) > self.size

    def __contains__(self, key):
        return key in self.queue

    def __getitem__(self, key):
        self.queue.move_to_end(key)
        return self.queue[key]

    def __setitem__(self, key, value):
        self.queue[key] = value
        self.nbytes += self.getsizeof(value)
        while self.is_oversized():
            _, old = self.queue.popitem(last=False)
            self.nbytes -= self.getsizeof(old)


def decode_raw(bytestring, shape, dtype):
    return np.frombuffer(bytestring, dtype=dtype).reshape(shape, order="F")


class CloudVolume:
    def __init__(self, path, max_cache_bytes):
        self.path = path
        self.lru = LRU(max_cache_bytes, size_in_bytes=True)

    def download_chunk(self, x, y, z):
        key = f"{x}_{y}_{z}"
        if key in self.lru:
            return self.lru[key][1]
        with open(os.path.join(self.path, f"{(x + y + z) % 8}.gz"), "rb") as f:
            img3d = decode_raw(zlib.decompress(f.read()), CHUNK, np.float32)
        self.lru[key] = ("numpy", img3d)
        return img3d

    def __getitem__(self, point):
        x, y, z = point
        return np.concatenate([self.download_chunk(x, y, z + n) for n in range(2)], axis=2)


def ingest(path):
    rng = np.random.default_rng(0)
    for n in range(8):
        chunk = rng.integers(0, 40, CHUNK).astype(np.float32)
        with open(os.path.join(path, f"{n}.gz"), "wb") as f:
            f.write(zlib.compress(chunk.tobytes(order="F"), 1))


def main():
    with tempfile.TemporaryDirectory() as path:
        ingest(path)
        vol = CloudVolume(path, max_cache_bytes=64 << 20)
        end = time.monotonic() + SECONDS
        x = 0
        while time.monotonic() < end:
            for y in range(4):
                cutout = vol[x, y, 0]
                for scale in range(1, 4):
                    spectrum = np.abs(np.fft.rfftn(cutout * scale))
                    skeleton = np.sort(spectrum, axis=0)[-1].mean()
            x += 1
            if x % 20 == 0:
                print(x, "cached bytes", vol.lru.nbytes, float(skeleton), flush=True)


if __name__ == "__main__":
    main()
