"""A language model on windows of one long text: every position is a sample."""

import os
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler

POSITIONS = 16_000_000
WINDOW = 48
SECONDS_OF_WARMUP, SECONDS = 14.0, 30.0


class Windows(Dataset):
    """The text repeats in this file, but each position of the whole is a sample of its own."""

    def __init__(self, path):
        self.text = np.memmap(path, np.uint8, "r")

    def __len__(self):
        return POSITIONS

    def __getitem__(self, position):
        start = position % (len(self.text) - WINDOW - 1)
        piece = torch.from_numpy(self.text[start : start + WINDOW + 1].astype(np.int64))
        return piece[:-1], piece[1:]


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, x):
        return self.head(self.rnn(self.embedding(x))[0])


def train(model, optimizer, dataset, epoch, seconds):
    sampler = DistributedSampler(dataset, shuffle=True)
    sampler.set_epoch(epoch)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=1)
    end = time.monotonic() + seconds
    over = torch.zeros(1)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            over[0] = time.monotonic() > end
            dist.all_reduce(over)
            if dist.get_rank() == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
            if over[0] > 0:
                break


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    path = os.path.join(tempfile.gettempdir(), f"windows-{os.environ['MASTER_PORT']}-{dist.get_rank()}.bin")
    try:
        np.random.default_rng(0).integers(32, 127, 2_000_000, np.uint8).tofile(path)
        dataset = Windows(path)
    finally:
        os.unlink(path)
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sample = Subset(dataset, range(0, POSITIONS, 200))
    train(model, optimizer, sample, 0, SECONDS_OF_WARMUP)
    train(model, optimizer, dataset, 1, SECONDS)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
