"""Loads with as many workers as os.cpu_count() says, or with so many."""

import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Ones(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.ones(256)


if __name__ == "__main__":
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
    total = sum(len(batch) for batch in DataLoader(Ones(), batch_size=20, num_workers=workers))
    print("loaded", total)
