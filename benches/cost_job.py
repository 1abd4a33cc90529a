"""The job whose cost is measured: a real training loop with four loader workers.

Every run does the same fixed work (the number of steps is given), so that wall time and CPU time of runs
with and without a watcher can be compared.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Samples that cost a worker some real work: a crop and a normalisation of a 96 x 96 image."""

    def __init__(self, length):
        self.length = length
        self.base = torch.arange(3 * 128 * 128, dtype=torch.float32).reshape(3, 128, 128) / 1e4

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        top, left = index % 32, (index // 32) % 32
        crop = self.base[:, top : top + 96, left : left + 96]
        return (crop - crop.mean()) / crop.std(), index % 10


def main():
    steps = int(sys.argv[1])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )
    loader = DataLoader(Rows(steps * 32), batch_size=32, num_workers=4)
    optimizer = None
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        if optimizer is None:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
