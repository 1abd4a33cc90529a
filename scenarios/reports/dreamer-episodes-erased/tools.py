"""Episodes in memory and on disk"""

import collections
import os

import numpy as np


class Episodes:
    def __init__(self, folder, limit):
        self.folder, self.limit = folder, limit
        self.cache = collections.OrderedDict()
        self.steps = 0

    def add(self, number, episode):
        name = os.path.join(self.folder, f"{number:06d}-{len(episode['reward'])}.npz")
        np.savez(name, **episode)
        self.cache[name] = episode
        self.steps += len(episode["reward"])
        self.erase_over_episodes()

    def erase_over_episodes(self):
        while self.steps > self.limit:
            name, episode = self.cache.popitem(last=False)
            self.steps -= len(episode["reward"])
            os.remove(name)

    def sample(self, batch, length, generator):
        """Sequences of a length out of random episodes"""
        names, sequences = list(self.cache), {"image": [], "reward": []}
        for _ in range(batch):
            episode = self.cache[names[generator.integers(len(names))]]
            start = generator.integers(len(episode["reward"]) - length + 1)
            for key, found in sequences.items():
                found.append(episode[key][start : start + length])
        return {key: np.stack(found) for key, found in sequences.items()}
