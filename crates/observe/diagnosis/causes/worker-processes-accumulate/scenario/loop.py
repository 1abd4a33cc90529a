"""Makes an iterator of a loader each second, and keeps it (keep) or drops it (drop)."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.full((64,), index)


if __name__ == "__main__":
    kept = []
    dataset = Samples()
    for _ in range(int(sys.argv[2])):
        iterator = iter(DataLoader(dataset, batch_size=4, num_workers=2))
        next(iterator)
        if sys.argv[1] == "keep":
            kept.append(iterator)
        del iterator
        time.sleep(1)
    print("iterators", len(kept))
