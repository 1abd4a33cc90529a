"""What the script uses of labelled data sets: files of compressed variables, that are read when they are first used"""

import json
import os
import zlib

import numpy as np


def write(path, variables):
    index, offset = {}, 0
    with open(path + ".data", "wb") as file:
        for name, (shape, compressed) in variables.items():
            file.write(compressed)
            index[name] = {"shape": shape, "offset": offset, "size": len(compressed)}
            offset += len(compressed)
    with open(path, "w") as file:
        json.dump(index, file)


class Variable:
    """A lazy array; with a cache, its values stay in memory after the first access"""

    def __init__(self, path, entry, cache):
        self.path, self.entry, self.cache, self._values = path, entry, cache, None

    @property
    def values(self):
        if self._values is not None:
            return self._values
        with open(self.path, "rb") as file:
            file.seek(self.entry["offset"])
            raw = zlib.decompress(file.read(self.entry["size"]))
        values = np.frombuffer(raw, dtype=np.float32).reshape(self.entry["shape"])
        if self.cache:
            self._values = values
        return values


class Dataset:
    def __init__(self, path, cache=True):
        with open(path) as file:
            index = json.load(file)
        self.variables = {name: Variable(path + ".data", entry, cache) for name, entry in index.items()}

    def __getitem__(self, name):
        return self.variables[name]


def open_datasets(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".nc"))
    return [Dataset(os.path.join(folder, name)) for name in names]
