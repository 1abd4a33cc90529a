"""Epochs over a persistent loader with large batches; the memory of all processes is printed at each epoch's ends"""

import os
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SAMPLES, SHAPE, BATCH = 1200, (84, 80, 3), 100
SECONDS = 26.0


class MyDataset(Dataset):
    def __init__(self):
        self.data = np.random.default_rng(0).random((SAMPLES, *SHAPE), dtype=np.float32)

    def __len__(self):
        return self.data.shape[0]

    def __getitem__(self, idx):
        return self.data[idx] + 1.0


def ram_used():
    """What the whole machine has in use, in GB"""
    values = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, rest = line.partition(":")
            values[name] = int(rest.split()[0])
    return (values["MemTotal"] - values["MemAvailable"]) / 2**20


class Probe(torch.nn.Module):
    """A small regression on coarse patches of the images"""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 7, stride=4)
        self.second = torch.nn.Conv2d(16, 32, 3, stride=2)
        self.head = torch.nn.Linear(32, 1)

    def forward(self, images):
        x = torch.relu(self.first(images.permute(0, 3, 1, 2)))
        x = torch.relu(self.second(x))
        return self.head(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    dataset = MyDataset()
    loader = DataLoader(
        dataset, batch_size=BATCH, num_workers=2, prefetch_factor=3, persistent_workers=True, shuffle=True,
        multiprocessing_context="fork",
    )
    model = Probe()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    started, epoch = time.monotonic(), 0
    print(f"{os.cpu_count()} cores, {len(loader)} steps an epoch", flush=True)
    while time.monotonic() - started < SECONDS:
        for step, images in enumerate(loader):
            loss = (model(images) - images.mean(dim=(1, 2, 3)).unsqueeze(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step in (0, len(loader) - 1):
                print(f"Epoch: {epoch}, step: {step}, RAM used: {ram_used():.2f} GB", flush=True)
        epoch += 1
    print(f"{epoch} epochs, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
