"""One rank: every image is read into memory before training, in each rank all of them."""

import os

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class InMemory(Dataset):
    def __init__(self, number):
        self.images = []
        for n in range(number):
            self.images.append(numpy.full((96, 96, 3), n % 251, numpy.uint8))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index][:32, :32].astype("float32"))


class Share(Sampler):
    def __init__(self, number, rank, world):
        self.indices = range(rank, number, world)

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        return iter(self.indices)


rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dataset = InMemory(13_000)
loader = DataLoader(dataset, batch_size=32, sampler=Share(len(dataset), rank, world), num_workers=1)
model = torch.nn.Conv2d(3, 8, 3)
for _ in range(2):
    for batch in loader:
        model(batch.permute(0, 3, 1, 2)).square().mean().backward()
