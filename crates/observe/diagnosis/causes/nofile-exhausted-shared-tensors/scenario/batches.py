"""Keeps what the loader yields; with the file_descriptor strategy each batch holds a descriptor."""

import sys

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        return torch.full((16,), float(index))


if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    kept = []
    for batch in DataLoader(Samples(), batch_size=1, num_workers=1):
        kept.append(batch.clone() if sys.argv[1] == "clone" else batch)
    print("kept", len(kept))
