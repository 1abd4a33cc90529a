"""Loaders for the training and the validation, whose workers start once and serve every epoch."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class _RepeatSampler:
    """Repeats a batch sampler for ever."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class InfiniteDataLoader(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", _RepeatSampler(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)

    def __del__(self):
        for worker in getattr(self.iterator, "_workers", []):
            if worker.is_alive():
                worker.terminate()
        self.iterator._shutdown_workers()


class YOLODataset(Dataset):
    """Images cached in memory; those of the training are put together to mosaics of four."""

    def __init__(self, count, size, augment, seed):
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 255, (count, size, size, 3), np.uint8)
        self.labels = rng.integers(0, 10, count)
        self.size, self.augment = size, augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            others = [self.images[random.randrange(len(self))] for _ in range(3)]
            top = np.concatenate([image, others[0]], axis=1)
            bottom = np.concatenate([others[1], others[2]], axis=1)
            image = np.concatenate([top, bottom])[::2, ::2]
            if random.random() < 0.5:
                image = image[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), int(self.labels[index])


def build_dataloader(dataset, batch, workers, shuffle):
    return InfiniteDataLoader(dataset, batch_size=batch, shuffle=shuffle, num_workers=workers)
