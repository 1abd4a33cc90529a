"""A dataset of so many samples of one number each, shuffled as DataLoader does it (list) or in blocks (blocks)."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class Numbers(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return index


class Shuffled(Sampler):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        for block in torch.randperm(self.length).split(10_000):
            yield from block.tolist()


if __name__ == "__main__":
    dataset = Numbers(int(sys.argv[2]))
    how = {"sampler": Shuffled(len(dataset))} if sys.argv[1] == "blocks" else {"shuffle": True}
    batches = iter(DataLoader(dataset, batch_size=100, num_workers=1, multiprocessing_context="fork", **how))
    print("sum", sum(next(batches).sum().item() for _ in range(200)))
