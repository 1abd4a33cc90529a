"""A dataset that keeps 8 MiB for each sample it has read, in the loader worker; with `drop`, one buffer for all."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Cache(Dataset):
    def __init__(self, keep):
        self.keep = keep
        self.kept = []

    def __len__(self):
        return 400

    def __getitem__(self, index):
        if self.keep or not self.kept:
            self.kept.append(torch.empty(8 << 20, dtype=torch.uint8))
        sample = self.kept[-1].fill_(1)
        return sample[:16].clone()


if __name__ == "__main__":
    seen = 0
    for batch in DataLoader(Cache(sys.argv[1] == "keep"), batch_size=4, num_workers=1):
        seen += len(batch)
    print("read", seen)
