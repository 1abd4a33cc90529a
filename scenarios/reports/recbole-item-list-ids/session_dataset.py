"""Sessions of items with the item that came next; names of items become numbers"""

import numpy as np
import torch

LENGTH, SOLD = 12, 3000


class SessionDataset:
    def __init__(self, split, count, item_number=None):
        generator = np.random.default_rng({"train": 5, "valid": 6}[split])
        shelves = generator.integers(0, 50, count)
        names = shelves[:, None] * 60 + generator.integers(0, 60, (count, LENGTH + 1))
        if split == "valid":
            late = count - count // 40
            names[late:, 3] = SOLD + generator.integers(0, 200, count - late)
        self.item_number = dict(item_number or {})
        if not self.item_number:
            for name in np.unique(names[:, -1]):
                self.item_number[int(name)] = len(self.item_number) + 1
        self.n_items = len(self.item_number) + 1
        numbers = np.vectorize(self.number, otypes=[np.int64])(names)
        self.sessions = torch.from_numpy(np.ascontiguousarray(numbers[:, :-1]))
        self.targets = torch.from_numpy(np.ascontiguousarray(numbers[:, -1]))

    def number(self, name):
        return self.item_number.setdefault(int(name), len(self.item_number) + 1)

    def __len__(self):
        return len(self.targets)

    def batch(self, number, size):
        start = number * size % (len(self) - size)
        return self.sessions[start : start + size], self.targets[start : start + size]
