"""Trains a classifier of single cell images that lie in HDF5 files"""

import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import hdf

torch.set_num_threads(1)
SHAPE, CHUNKS, FILES = (3, 64, 64), 400, 2
SECONDS, BATCH_S = 34.0, 0.2


class HDF5SingleCellDataset(Dataset):
    def __init__(self, paths, epoch_cells):
        self.handle_list = [hdf.File(path) for path in paths]
        self.locations = [(file, row) for file, handle in enumerate(self.handle_list) for row in range(len(handle))]
        self.epoch_cells = epoch_cells

    def __len__(self):
        return self.epoch_cells

    def __getitem__(self, index):
        file, row = self.locations[index % len(self.locations)]
        image = torch.from_numpy(self.handle_list[file].read(row).astype(np.float32))
        return image, (row // hdf.CHUNK) % 4


def cells(seed):
    source = np.random.default_rng(seed)
    rows, columns = np.mgrid[:64, :64]
    for number in range(CHUNKS):
        centre = source.uniform(24, 40, (hdf.CHUNK, 3, 2, 1, 1))
        radius = 6 + 5 * (number % 4)
        distance = np.hypot(rows - centre[:, :, 0], columns - centre[:, :, 1])
        yield np.round(np.clip(1 - distance / (2 * radius), 0, 1) * 32) / 32


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"single_cells_{number}.h5") for number in range(FILES)]
        for number, path in enumerate(paths):
            hdf.write(path, cells(number), SHAPE)
        dataset = HDF5SingleCellDataset(paths, 200_000)
        loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, multiprocessing_context="fork")
        model = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 4),
        )
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        started = time.monotonic()
        for step, (images, labels) in enumerate(loader, 1):
            until = time.monotonic() + BATCH_S
            while True:
                loss = nn.functional.cross_entropy(model(images + 0.05 * torch.randn_like(images)), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            if step % 20 == 0:
                print(f"step {step}: loss {loss.item():.3f}", flush=True)
            if time.monotonic() - started > SECONDS:
                break


if __name__ == "__main__":
    main()
