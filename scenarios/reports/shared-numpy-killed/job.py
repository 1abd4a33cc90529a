"""Volumes of a scan go to a Pool as shared numpy arrays; each is closed after use, and forgotten by unlink()."""

import os
import time
from functools import partial
from multiprocessing import Pool, resource_tracker
from multiprocessing.shared_memory import SharedMemory

import numpy as np

KEYS = {"left_upper": 1, "left_lower": 2, "right_upper": 3, "right_middle": 4, "right_lower": 5}


class SharedArray:
    """What the package's `ndarray` is: a name, a shape and a dtype, mapped again where it is unpickled."""

    def __init__(self, name, shape, dtype, create=False):
        self.name, self.shape, self.dtype = name, shape, np.dtype(dtype)
        size = int(np.prod(shape)) * self.dtype.itemsize
        self.shm = SharedMemory(name=name, create=create, size=size if create else 0)
        self.name = self.shm.name
        self.array = np.ndarray(shape, self.dtype, buffer=self.shm.buf)

    def __reduce__(self):
        return SharedArray, (self.name, self.shape, self.dtype.str)

    def close(self):
        self.array = None
        self.shm.close()


def from_array(array):
    shared = SharedArray(None, array.shape, array.dtype, create=True)
    shared.array[...] = array
    return shared


def map_function(lobe_label_map, pixel_array, spacing, key):
    mask = lobe_label_map.array == key
    values = pixel_array.array[mask].astype(np.float64)
    histogram, _ = np.histogram(values, bins=200)
    volume = float(mask.sum() * np.prod(spacing.array))
    for shared in (lobe_label_map, pixel_array, spacing):
        shared.close()
    return key, volume, float(np.sort(values)[len(values) // 2]), int(histogram.argmax())


def read_scan(number, atlas):
    time.sleep(0.15)  # the archive sends it
    rng = np.random.default_rng(number)
    label = np.repeat(np.repeat(rng.integers(0, 6, (12, 32, 32), np.uint8), 8, 1), 8, 2)
    pixel = (rng.standard_normal(label.shape, np.float32) * 300 - 500).astype(np.int16)
    pixel += (atlas[number % len(atlas)] * 8).astype(np.int16)
    return np.repeat(label, 4, 0), np.repeat(pixel, 4, 0), np.array([1.0, 0.7, 0.7])


def main():
    print("main", os.getpid())
    resource_tracker.ensure_running()
    with Pool(2) as p:
        atlas = np.random.default_rng(0).standard_normal((400, 256, 256), np.float32)
        for number in range(150):
            label, pixel, spacing = read_scan(number, atlas)
            lobe_label_map, pixel_array, spacing = from_array(label), from_array(pixel), from_array(spacing)
            func = partial(map_function, lobe_label_map, pixel_array, spacing)
            result = p.map_async(func, KEYS.values()).get(timeout=30)
            print(number, " ".join(f"{key}:{volume:.0f}:{median:.0f}" for key, volume, median, _ in result), flush=True)
            lobe_label_map.close()
            pixel_array.close()
            spacing.close()


if __name__ == "__main__":
    main()
