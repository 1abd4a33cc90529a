"""A dataset that keeps a buffer for each sample: for ever (leak), for the last hundred only (bounded)."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, bound):
        self.kept = []
        self.bound = bound

    def __len__(self):
        return 240

    def __getitem__(self, index):
        self.kept.append(b"x" * (1 << 20))
        if self.bound:
            del self.kept[: -self.bound]
        time.sleep(0.04)
        return torch.tensor(index)


if __name__ == "__main__":
    bound = 40 if sys.argv[1] == "bounded" else 0
    persistent = sys.argv[2] == "persistent"
    loader = DataLoader(Samples(bound), batch_size=4, num_workers=2, persistent_workers=persistent)
    for _ in range(6):
        total = sum(batch.sum().item() for batch in loader)
    print("sum", total)
