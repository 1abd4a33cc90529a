"""Every sample starts a program; the workers and their programs share the cgroup's number of tasks."""

import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Samples(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        subprocess.run(["sleep", "0.4"], check=True)
        return torch.tensor(index)


if __name__ == "__main__":
    loader = DataLoader(Samples(), batch_size=2, num_workers=int(sys.argv[1]))
    print("sum", sum(batch.sum().item() for batch in loader))
