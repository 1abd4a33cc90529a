"""Takes batches without end: through itertools.cycle, or by a generator that begins the loader anew."""

import itertools
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.zeros(1 << 18, dtype=torch.uint8)


def forever(loader):
    while True:
        yield from loader


if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    loader = DataLoader(Samples(), batch_size=1, num_workers=1)
    batches = itertools.cycle(loader) if sys.argv[1] == "cycle" else forever(loader)
    # Nothing is computed: what a sum takes meanwhile, malloc may keep.
    print("bytes", sum(batch.numel() for batch in itertools.islice(batches, 900)))
