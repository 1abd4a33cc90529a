"""A column of nested lists: flat values, and the offsets of the lists of each level, in mapped files"""

import os

import numpy as np
import torch

LEVELS = 4


class NestedWriter:
    def __init__(self, folder):
        self.values = open(os.path.join(folder, "values"), "wb")
        self.offsets = [open(os.path.join(folder, f"offsets-{level}"), "wb") for level in range(LEVELS)]
        self.ends = [0] * LEVELS
        for file in self.offsets:
            file.write(np.zeros(1, np.int32).tobytes())

    def append(self, tensor):
        """Adds a tensor of as many dimensions as there are levels"""
        lists = 1
        for level in range(LEVELS):
            size = tensor.shape[level]
            ends = self.ends[level] + size * np.arange(1, lists + 1, dtype=np.int64)
            self.offsets[level].write(ends.astype(np.int32).tobytes())
            self.ends[level] = int(ends[-1])
            lists *= size
        self.values.write(tensor.tobytes())

    def close(self):
        for file in [self.values, *self.offsets]:
            file.close()


class NestedColumn:
    def __init__(self, folder):
        def mapped(name, kind):
            return np.asarray(np.memmap(os.path.join(folder, name), kind, "r"))

        self.values = mapped("values", np.float32)
        self.offsets = [mapped(f"offsets-{level}", np.int32) for level in range(LEVELS)]

    def __len__(self):
        return len(self.offsets[0]) - 1

    def to_pylist(self, index, level=0):
        start, end = int(self.offsets[level][index]), int(self.offsets[level][index + 1])
        if level == LEVELS - 1:
            return self.values[start:end].tolist()
        return [self.to_pylist(below, level + 1) for below in range(start, end)]


class Dataset:
    def __init__(self, columns):
        self.columns, self.format = columns, None

    def __len__(self):
        return len(self.columns["label"])

    def set_format(self, kind):
        self.format = kind

    def __getitem__(self, index):
        row = {}
        for name, column in self.columns.items():
            row[name] = column.to_pylist(index) if isinstance(column, NestedColumn) else column[index]
        if self.format == "torch":
            row = {name: torch.tensor(np.array(value)) for name, value in row.items()}
        return row
