"""Trains a network on the chunks of a dataset"""

import sys
import time

import torch
from torch import nn

from lake import LENGTH, SAMPLES, Dataset, Storage, write_dataset

torch.set_num_threads(1)
CHUNKS, BATCH, CHUNK_S = 360, 16, 0.15


def main():
    storage = Storage(sys.argv[1])
    write_dataset(storage, CHUNKS)
    dataset = Dataset(storage, CHUNKS)
    print(f"{len(dataset)} samples", flush=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(LENGTH, 128), nn.GELU(), nn.Linear(128, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for start in range(0, len(dataset), SAMPLES):
        until = time.monotonic() + CHUNK_S
        first = start
        while True:
            batch = torch.stack([torch.from_numpy(dataset[first + one]) for one in range(BATCH)])
            loss = (model(batch) - batch.mean(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            first = start + (first + BATCH - start) % SAMPLES
            if time.monotonic() > until:
                break
        if start // SAMPLES % 20 == 19:
            print(f"{start + SAMPLES} samples, loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
