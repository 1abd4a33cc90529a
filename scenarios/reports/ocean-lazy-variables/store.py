"""A chunked store of model output: a folder with a file for each month, opened lazily"""

import os
import sys
import zlib

import numpy as np

MONTHS, SHAPE = 150, (4, 384, 512)


class BackendArray:
    """A month of the variables on disk"""

    def __init__(self, path):
        self.path, self.shape = path, SHAPE

    def get(self):
        with open(self.path, "rb") as file:
            offset = np.frombuffer(file.read(4), np.float32)[0]
            field = np.frombuffer(zlib.decompress(file.read()), np.float32).reshape(SHAPE)
        return field + offset


class LazyArray:
    """Reads when it is indexed first"""

    def __init__(self, backend):
        self.array = backend

    def _ensure_read(self):
        if not isinstance(self.array, np.ndarray):
            self.array = self.array.get()

    def __getitem__(self, key):
        self._ensure_read()
        return self.array[key]


class Dataset:
    def __init__(self, folder):
        self.variables = [LazyArray(BackendArray(os.path.join(folder, name))) for name in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.variables)

    def isel(self, month, rows, columns):
        return self.variables[month][:, rows, columns]


def write(folder):
    os.mkdir(folder)
    latitude, longitude = np.linspace(0, 3, SHAPE[1]), np.linspace(0, 6, SHAPE[2])
    field = np.sin(latitude)[:, None] * np.cos(longitude)[None] * 10
    field = np.stack([np.round(field * level, 1) for level in range(1, SHAPE[0] + 1)]).astype(np.float32)
    packed = zlib.compress(field.tobytes(), 1)
    for month in range(MONTHS):
        with open(os.path.join(folder, f"{month:04d}"), "wb") as file:
            file.write(np.float32(month / MONTHS).tobytes() + packed)


if __name__ == "__main__":
    write(sys.argv[1])
