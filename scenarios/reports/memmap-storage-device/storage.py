"""A storage of transitions in a mapped file, and the replay buffer over it"""

import os

import numpy as np
import torch


class LazyMemmapStorage:
    def __init__(self, size, folder, device="cpu"):
        self.size, self.folder, self.device = size, folder, torch.device(device)
        self.fields = None
        self.cursor = self.filled = 0

    def initialise(self, data):
        self.fields = {}
        for name, part in data.items():
            path = os.path.join(self.folder, f"{name}.memmap")
            self.fields[name] = np.memmap(path, np.float32, "w+", shape=(self.size, *part.shape[1:]))

    def extend(self, data):
        if self.fields is None:
            self.initialise(data)
        count = len(next(iter(data.values())))
        places = (self.cursor + np.arange(count)) % self.size
        for name, part in data.items():
            self.fields[name][places] = part
        self.cursor = (self.cursor + count) % self.size
        self.filled = min(self.filled + count, self.size)

    def get(self, places):
        if self.device.type != "cpu":
            raise ValueError(
                "Memory map device other than CPU isn't supported. To cast your data to the desired device, use "
                "`buffer.append_transform(lambda x: x.to(device))` or a similar transform."
            )
        return {name: torch.from_numpy(part[places]) for name, part in self.fields.items()}


class ReplayBuffer:
    def __init__(self, storage, batch_size, seed):
        self.storage, self.batch_size = storage, batch_size
        self.generator = np.random.default_rng(seed)

    def extend(self, data):
        self.storage.extend(data)

    def sample(self):
        return self.storage.get(self.generator.integers(0, self.storage.filled, self.batch_size))
