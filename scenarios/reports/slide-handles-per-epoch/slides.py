"""Slide images of some levels in one file, and the tiles of them that hold tissue."""

import os
import struct

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset

HEADER = struct.Struct("<4sIII")


def write_slide(path, seed, side=1536, levels=3):
    rng = np.random.default_rng(seed)
    with open(path, "wb") as file:
        file.write(HEADER.pack(b"WSI0", side, levels, 0))
        for level in range(levels):
            rows = side >> level
            coarse = rng.integers(90, 240, (rows // 16, rows // 16, 3), np.uint8)
            file.write(np.repeat(np.repeat(coarse, 16, 0), 16, 1).tobytes())


class Backend:
    """Reads regions by pread. A file stays open until close()."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDONLY)
        magic, self.side, self.levels, _ = HEADER.unpack(os.pread(self.descriptor, HEADER.size, 0))
        if magic != b"WSI0":
            raise ValueError(f"{path} is no slide")
        sizes = [(self.side >> level) ** 2 * 3 for level in range(self.levels)]
        self.offsets = [HEADER.size + sum(sizes[:level]) for level in range(self.levels)]

    def read_region(self, row, column, level, size):
        width = self.side >> level
        lines = []
        for line in range(size):
            start = self.offsets[level] + ((row + line) * width + column) * 3
            lines.append(os.pread(self.descriptor, size * 3, start))
        return np.frombuffer(b"".join(lines), np.uint8).reshape(size, size, 3)

    def close(self):
        os.close(self.descriptor)


class TiledSlide(Dataset):
    def __init__(self, path, level, tile, stride):
        self.image, self.level, self.tile = Backend(path), level, tile
        width = self.image.side >> level
        starts = range(0, width - tile + 1, stride)
        self.places = [(row, column) for row in starts for column in starts]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        row, column = self.places[i]
        region = self.image.read_region(row, column, self.level, self.tile)
        tile = torch.from_numpy(region.copy()).permute(2, 0, 1).float() / 255
        shift = torch.rand(3, 1, 1) * 0.2 - 0.1
        return (tile + shift).clamp(0, 1), int(region.mean() > 165)


class SlideData:
    def __init__(self, paths, batch_size):
        self.paths, self.batch_size = paths, batch_size

    def construct(self, paths, level):
        return ConcatDataset([TiledSlide(path, level, 64, 80) for path in paths])

    def train_dataloader(self):
        dataset = self.construct(self.paths[:-2], 1)
        return DataLoader(dataset, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.construct(self.paths[-2:], 2), self.batch_size)
