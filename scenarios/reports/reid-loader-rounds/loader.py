"""A loader whose batches are read ahead by a thread in the background, and a sampler of identities"""

import queue
import threading

import numpy as np
from torch.utils.data import DataLoader, Sampler


class BackgroundGenerator(threading.Thread):
    def __init__(self, generator, max_prefetch=6):
        super().__init__(daemon=True)
        self.queue = queue.Queue(max_prefetch)
        self.generator = generator
        self.start()

    def run(self):
        for item in self.generator:
            self.queue.put(item)
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        item = self.queue.get()
        if item is None:
            raise StopIteration
        return item


class DataLoaderX(DataLoader):
    def __iter__(self):
        self.iter = BackgroundGenerator(super().__iter__())
        self.preload()
        return self

    def preload(self):
        self.batch = next(self.iter, None)

    def __next__(self):
        batch = self.batch
        if batch is None:
            raise StopIteration
        self.preload()
        return batch


class IdentitySampler(Sampler):
    """An endless stream of indices, with some images of each identity in a row"""

    def __init__(self, labels, instances, seed):
        self.members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        self.instances, self.generator = instances, np.random.default_rng(seed)

    def __iter__(self):
        while True:
            for identity in self.generator.permutation(len(self.members)):
                yield from self.generator.choice(self.members[identity], self.instances).tolist()
