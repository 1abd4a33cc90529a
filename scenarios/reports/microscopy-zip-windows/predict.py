"""Predicts the membranes of cells from their phase, for sliding windows through each position of a plate"""

import os
import tempfile
import time

import numpy as np
import torch
from store import Position, ZipStore, pack
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
POSITIONS, DEPTH, BATCH, STATISTICS_S, STEP_S = 40, 5, 4, 0.5, 0.08


class SlidingWindowDataset(Dataset):
    def __init__(self, positions):
        self.positions, self.windows = positions, []
        for number, position in enumerate(positions):
            self.windows += [(number, z) for z in range(position.shape[1] - DEPTH + 1)]
        self.statistics = {}

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, index):
        number, z = self.windows[index]
        position, sample = self.positions[number], {"index": index}
        for channel, name in enumerate(position.channels):
            mean, std = self.statistics.get(name, (0.0, 1.0))
            window = position.window(channel, z, z + DEPTH).astype(np.float32)
            sample[name] = torch.from_numpy((window - np.float32(mean)) / np.float32(std))[None]
        return sample


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv3d(1, 4, (3, 4, 4), (1, 4, 4), (1, 0, 0))
        self.up = nn.ConvTranspose3d(4, 1, (1, 4, 4), (1, 4, 4))

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


def fit_statistics(dataset):
    """The mean and the deviation of each channel over all positions"""
    sums, begin = {}, time.monotonic()
    for number, position in enumerate(dataset.positions, 1):
        for channel, name in enumerate(position.channels):
            stack = position.window(channel, 0, position.shape[1]).astype(np.float64)
            count, total, squares = sums.get(name, (0, 0.0, 0.0))
            sums[name] = (count + stack.size, total + stack.sum(), squares + (stack**2).sum())
        while time.monotonic() < begin + number * STATISTICS_S:
            np.percentile(stack[number % len(stack)], [1, 50, 99])
        if number % 10 == 0:
            print(f"statistics of {number} positions", flush=True)
    for name, (count, total, squares) in sums.items():
        mean = total / count
        dataset.statistics[name] = (mean, (squares / count - mean**2) ** 0.5)


@torch.inference_mode()
def predict(model, dataset):
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=4)
    begin, errors = time.monotonic(), []
    for step, batch in enumerate(loader, 1):
        errors.append((model(batch["phase"]) - batch["membrane"]).square().mean().item())
        while time.monotonic() < begin + step * STEP_S:
            model(batch["phase"][:1])
        if step % 20 == 0:
            print(f"step {step} of {len(loader)}: error {np.mean(errors):.3f}", flush=True)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plate.zip")
        pack(path, POSITIONS)
        store = ZipStore(path)
        dataset = SlidingWindowDataset([Position(store, f"{number:03}") for number in range(POSITIONS)])
        fit_statistics(dataset)
        print(f"{len(dataset)} windows", flush=True)
        for _ in range(4):
            predict(Unet(), dataset)


if __name__ == "__main__":
    main()
