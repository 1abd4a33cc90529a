"""Convert satellite segments to one array on disk: a pool of threads reads and resamples, the main thread writes"""

import json
import lzma
import os
import time
import zlib
from multiprocessing.pool import ThreadPool

import numpy as np
import torch

torch.set_num_threads(1)
SIDE, OUT = 1800, 300
SECONDS = 26.0
STARTED = time.monotonic()


def write_native_files(folder, count=6):
    generator = np.random.default_rng(11)
    paths = []
    for number in range(count):
        smooth = np.add.outer(np.arange(SIDE), np.arange(SIDE) * (number + 1)) // 16 % 1024
        counts = (smooth + generator.integers(0, 16, (SIDE, SIDE))).astype(np.uint16)
        path = os.path.join(folder, f"MSG3-SEVI-{number:02d}.nat")
        with open(path, "wb") as file:
            file.write(zlib.compress(counts.tobytes(), 1))
        paths.append(path)
    return paths


class Scaler:
    """Counts to brightness between 0 and 1"""

    def __init__(self, low=-1.2, high=103.9):
        self.low, self.high = low, high

    def rescale(self, counts):
        radiance = counts.astype(np.float32) * 0.11 - 5.0
        np.clip(radiance, self.low, self.high, out=radiance)
        radiance -= self.low
        radiance /= self.high - self.low
        return radiance


def load_native_to_dataarray(task):
    """One segment, resampled to the area of the project"""
    stamp, path, scaler = task
    if time.monotonic() - STARTED > SECONDS:
        return None
    with open(path, "rb") as file:
        counts = np.frombuffer(zlib.decompress(file.read()), dtype=np.uint16).reshape(SIDE, SIDE)
    radiance = scaler.rescale(counts)
    factor = SIDE // OUT
    area = radiance.reshape(OUT, factor, OUT, factor).mean(axis=(1, 3))
    spread = radiance.reshape(OUT, factor, OUT, factor).max(axis=(1, 3)) - area
    return stamp, np.stack([area, spread]) + np.float32(stamp % 7) * 1e-3


class Store:
    """Chunks of a compressed array, one for each time"""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.times = []

    def append(self, stamp, values):
        packed = (values * 1023).astype(np.int16)
        chunk = lzma.compress(packed.tobytes(), preset=6)
        with open(os.path.join(self.folder, f"{stamp}.0.0"), "wb") as file:
            file.write(chunk)
        self.times.append(stamp)

    def close(self):
        with open(os.path.join(self.folder, ".zattrs"), "w") as file:
            json.dump({"time": sorted(self.times)}, file)


def main():
    os.makedirs("native", exist_ok=True)
    paths = write_native_files("native")
    store, scaler = Store("hrv.zarr"), Scaler()
    tasks = [(stamp, paths[stamp % len(paths)], scaler) for stamp in range(6000)]
    pool = ThreadPool(processes=2)
    for number, result in enumerate(pool.imap_unordered(load_native_to_dataarray, tasks), 1):
        if result is not None:
            store.append(*result)
        if number % 20 == 0:
            print(f"{number} of {len(tasks)} written", flush=True)
        if time.monotonic() - STARTED > SECONDS:
            break
    pool.terminate()
    store.close()


if __name__ == "__main__":
    main()
