"""A dataset caches its samples in a dict of a multiprocessing Manager: they pile up in the manager's process."""

import multiprocessing
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


class MyDataset(Dataset):
    def __init__(self, shared_dict, length):
        self.shared_dict, self.length = shared_dict, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index not in self.shared_dict:
            self.shared_dict[index] = np.full(250_000, float(index))
        return torch.from_numpy(self.shared_dict[index])[:100]


def main():
    with multiprocessing.Manager() as manager:
        dataset = MyDataset(manager.dict(), 100_000)
        end = time.monotonic() + SECONDS
        for _ in DataLoader(dataset, batch_size=1):
            time.sleep(0.1)
            if time.monotonic() > end:
                break


if __name__ == "__main__":
    main()
