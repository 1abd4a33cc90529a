"""Train an emulator of the ocean on patches of months in random order"""

import argparse
import os
import time

import torch
from store import SHAPE, Dataset

torch.set_num_threads(1)
PATCH, PATCHES_PER_MONTH, LONGEST_S = 80, 32, 75


class Emulator(torch.nn.Module):
    def __init__(self, channels, width=32):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(channels, width, 3, padding=1),
            torch.nn.GELU(),
            torch.nn.Conv2d(width, width, 3, padding=1),
            torch.nn.GELU(),
            torch.nn.Conv2d(width, channels, 3, padding=1),
        )

    def forward(self, state):
        return state + self.body(state)


def patches(dataset, generator, scale):
    """Patches of all months, month after month in a random order"""
    for month in torch.randperm(len(dataset) - 1, generator=generator).tolist():
        for _ in range(PATCHES_PER_MONTH):
            row = int(torch.randint(0, SHAPE[1] - PATCH, (1,), generator=generator))
            column = int(torch.randint(0, SHAPE[2] - PATCH, (1,), generator=generator))
            window = slice(row, row + PATCH, scale), slice(column, column + PATCH, scale)
            now, later = dataset.isel(month, *window), dataset.isel(month + 1, *window)
            yield torch.tensor(now)[None], torch.tensor(later)[None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    arguments = parser.parse_args()
    rank = int(os.environ["SLURM_PROCID"])
    torch.manual_seed(rank)
    generator = torch.Generator().manual_seed(rank)
    dataset = Dataset(arguments.store)
    model = Emulator(SHAPE[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    until, epoch, step = time.monotonic() + LONGEST_S, 0, 0
    while epoch < 3 and time.monotonic() < until:
        for now, later in patches(dataset, generator, 1):
            loss = torch.nn.functional.mse_loss(model(now), later)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"[{rank}] epoch {epoch} step {step}: {loss.item():.4f}", flush=True)
        epoch += 1


if __name__ == "__main__":
    main()
