"""A loader whose batch number 6 takes long (seconds), the others a moment; in their order, or as they come.

What a worker cannot share is lost without a word but on standard error: then the loader waits for its timeout.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader

SIZE = 12 << 20


class Samples(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 60

    def __getitem__(self, index):
        time.sleep(self.seconds if index == 6 else 0.2)
        return torch.ones(SIZE, dtype=torch.uint8)


if __name__ == "__main__":
    seconds, options = float(sys.argv[1]), {}
    if "as-they-come" in sys.argv:
        options["in_order"] = False
    loader = DataLoader(Samples(seconds), batch_size=None, num_workers=2, prefetch_factor=10, timeout=20, **options)
    print(sum(int(batch[0]) for batch in loader))
