"""A dataset that opens a file for each sample and keeps it open, in a loader worker."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, leak):
        self.leak = leak
        self.kept = []

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        file = open(__file__, "rb")
        data = file.read(16)
        if self.leak:
            self.kept.append(file)
        else:
            file.close()
        time.sleep(0.005)
        return torch.tensor(list(data))


if __name__ == "__main__":
    seen = 0
    for batch in DataLoader(Files(sys.argv[1] == "leak"), batch_size=10, num_workers=1):
        seen += len(batch)
        if seen == 500:
            break
    print("read", seen)
