"""Texture of a large tiled raster, window after window, with the blocks read through a cache as a raster library's"""

import collections
import concurrent.futures
import os
import threading
import time
import zlib

import numpy as np

BLOCK, BLOCKS, WINDOW, STRIDE = 256, 64, 512, 128
CACHE_MAX = 160 << 20
WINDOWS, LASTS_S = 4000, 32
PATH = "scene.tif"


def write_raster(path, kinds=6):
    """Blocks of a few kinds, compressed; which kind lies where follows from its row and column"""
    rng = np.random.default_rng(2)
    offsets = []
    with open(path, "wb") as file:
        for _ in range(kinds):
            block = rng.normal(400, 60, (BLOCK, BLOCK)).round(0).astype(np.float32)
            packed = zlib.compress(block.tobytes(), 1)
            offsets.append((file.tell(), len(packed)))
            file.write(packed)
    return offsets


class BlockCache:
    """The blocks used last, up to a number of bytes; one for all datasets of the process"""

    def __init__(self, limit):
        self.limit, self.bytes, self.blocks, self.lock = limit, 0, collections.OrderedDict(), threading.Lock()

    def get(self, key, read):
        with self.lock:
            block = self.blocks.get(key)
            if block is not None:
                self.blocks.move_to_end(key)
                return block
        block = read()
        with self.lock:
            if key not in self.blocks:
                self.blocks[key] = block
                self.bytes += block.nbytes
            while self.bytes > self.limit:
                self.bytes -= self.blocks.popitem(last=False)[1].nbytes
        return block


class Raster:
    def __init__(self, path, offsets, cache):
        self.descriptor, self.offsets, self.cache = os.open(path, os.O_RDONLY), offsets, cache
        self.height = self.width = BLOCK * BLOCKS

    def _read_block(self, row, column):
        offset, size = self.offsets[(7 * row + 3 * column) % len(self.offsets)]
        data = zlib.decompress(os.pread(self.descriptor, size, offset))
        return np.frombuffer(data, np.float32).reshape(BLOCK, BLOCK) + np.float32(row - column)

    def read(self, top, left, size):
        out = np.empty((size, size), np.float32)
        for row in range(top // BLOCK, (top + size - 1) // BLOCK + 1):
            for column in range(left // BLOCK, (left + size - 1) // BLOCK + 1):
                block = self.cache.get((row, column), lambda r=row, c=column: self._read_block(r, c))
                y, x = row * BLOCK - top, column * BLOCK - left
                y0, x0, y1, x1 = max(y, 0), max(x, 0), min(y + BLOCK, size), min(x + BLOCK, size)
                out[y0:y1, x0:x1] = block[y0 - y : y1 - y, x0 - x : x1 - x]
        return out

    def close(self):
        os.close(self.descriptor)


def texture(raster, top, left):
    window = raster.read(top, left, WINDOW)
    spectrum = np.abs(np.fft.rfft2(window - window.mean()))
    sums = np.pad(np.cumsum(np.cumsum(window.astype(np.float64) ** 2, 0), 1), ((1, 0), (1, 0)))
    local = sums[9:, 9:] - sums[:-9, 9:] - sums[9:, :-9] + sums[:-9, :-9]
    return float(np.sqrt(local).std()), float(spectrum[:64, :64].sum() / spectrum.sum())


def main():
    cache = BlockCache(CACHE_MAX)
    raster = Raster(PATH, write_raster(PATH), cache)
    lefts = range(0, raster.width - WINDOW + 1, STRIDE)
    windows = [(top, left) for top in range(64, raster.height - WINDOW, WINDOW) for left in lefts]
    until, done = time.monotonic() + LASTS_S, 0
    with concurrent.futures.ThreadPoolExecutor(2) as executor, open("texture.csv", "w") as out:
        for first in range(0, min(WINDOWS, len(windows)), 40):
            some = windows[first : first + 40]
            for (top, left), values in zip(some, executor.map(lambda at: texture(raster, *at), some)):
                out.write(f"{top},{left},{values[0]:.3f},{values[1]:.5f}\n")
            done += len(some)
            if first % 200 == 0:
                print(f"{done} windows, {cache.bytes >> 20} MiB of blocks", flush=True)
            if time.monotonic() > until:
                break
    raster.close()


if __name__ == "__main__":
    main()
