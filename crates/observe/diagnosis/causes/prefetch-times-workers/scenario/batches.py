"""Batches of 8 MiB, made faster than they are used; the number that waits ahead is an argument."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.zeros(4 << 20, dtype=torch.uint8)


if __name__ == "__main__":
    seen = 0
    for batch in DataLoader(Samples(), batch_size=2, num_workers=2, prefetch_factor=int(sys.argv[1])):
        seen += len(batch)
        time.sleep(0.4)
    print("read", seen)
