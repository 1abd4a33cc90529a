"""A dataset that starts a shell for each of 10,000 samples, in four workers."""

import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class MyDataset(Dataset):
    def __init__(self, size):
        self.data = np.random.rand(size, 100)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        os.system("sleep 0.00001")
        return torch.tensor(self.data[index, :])


if __name__ == "__main__":
    for _ in DataLoader(MyDataset(10000), batch_size=32, num_workers=4):
        pass
