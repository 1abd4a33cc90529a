"""One rank: a transformer over the particles of an event, on a concatenated dataset with random access"""

import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, RandomSampler

torch.set_num_threads(1)
PARTICLES, FEATURES, WIDTH, LAST_S = 900, 12, 64, 60.0


class ArrayRecordReader:
    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)
        self.size = PARTICLES * FEATURES * 4

    def read(self, index):
        return os.pread(self.file.fileno(), self.size, index * self.size)


class TFDSDataset(Dataset):
    """The events of one file."""

    def __init__(self, path):
        self.path = path
        self.length = os.path.getsize(path) // (PARTICLES * FEATURES * 4)
        self.reader = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.reader is None:
            self.reader = ArrayRecordReader(self.path)
        event = np.frombuffer(bytearray(self.reader.read(index)), dtype=np.float32)
        return torch.from_numpy(event.reshape(PARTICLES, FEATURES))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, -1)
        weights = torch.softmax(query @ key.transpose(1, 2) / WIDTH**0.5, -1)
        return self.norm(x + self.ffn(weights @ value))


def main():
    folder, rank = sys.argv[1], int(os.environ["RANK"])
    torch.manual_seed(rank)
    dataset = ConcatDataset([TFDSDataset(os.path.join(folder, name)) for name in sorted(os.listdir(folder))])
    sampler = RandomSampler(dataset, replacement=True, num_samples=100_000)
    loader = DataLoader(dataset, batch_size=2, sampler=sampler)
    model = nn.Sequential(nn.Linear(FEATURES, WIDTH), Layer(), Layer(), Layer(), nn.Linear(WIDTH, 6))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    started = time.monotonic()
    for step, events in enumerate(loader):
        momenta = model(events)
        loss = nn.functional.huber_loss(momenta, events[:, :, :6])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"rank {rank} step {step}: {loss.item():.4f}", flush=True)
        if time.monotonic() - started > LAST_S:
            break


if __name__ == "__main__":
    main()
