"""Compute embeddings for the patches of many whole-slide images."""

import functools
import os
import tempfile
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

torch.set_num_threads(1)
SLIDES, PATCHES, TILE, OVERVIEW = 150, 9, 96, (860, 860, 3)


def write_slides(folder):
    rng = np.random.default_rng(0)
    smooth = np.linspace(0, 200, OVERVIEW[0] * OVERVIEW[1] * 3).astype(np.uint8).reshape(OVERVIEW)
    paths = []
    for number in range(SLIDES):
        path = os.path.join(folder, f"slide_{number:03d}.wsi")
        tiles = rng.integers(0, 32, (4, TILE, TILE, 3), dtype=np.uint8)
        blocks = [zlib.compress((smooth + np.uint8(number)).tobytes(), 1)]
        blocks += [zlib.compress(t.tobytes(), 1) for t in tiles]
        with open(path, "wb") as file:
            for block in blocks:
                file.write(len(block).to_bytes(4, "little") + block)
        paths.append(path)
    return paths


class Slide:
    """An opened slide: its file, where its blocks are, and the overview at the lowest magnification."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.blocks = []
        while head := self.file.read(4):
            size = int.from_bytes(head, "little")
            self.blocks.append((self.file.tell(), size))
            self.file.seek(size, 1)
        self.overview = np.frombuffer(bytearray(self._block(0)), dtype=np.uint8).reshape(OVERVIEW)

    def _block(self, number):
        offset, size = self.blocks[number]
        self.file.seek(offset)
        return zlib.decompress(self.file.read(size))

    def read_region(self, number):
        tile = np.frombuffer(self._block(1 + number % 4), dtype=np.uint8).reshape(TILE, TILE, 3)
        return tile + np.uint8(number)


class WsiDataset(Dataset):
    """The patches of one slide."""

    def __init__(self, path):
        self.path = path

    @functools.cached_property
    def _wsi(self):
        return Slide(self.path)

    def __len__(self):
        return PATCHES

    def __getitem__(self, index):
        patch = self._wsi.read_region(index)
        stain = self._wsi.overview[::16, ::16].mean()
        x = torch.from_numpy(patch).permute(2, 0, 1).float()
        return (x - float(stain)) / 64.0


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        dataset = ConcatDataset([WsiDataset(p) for p in write_slides(folder)])
        loader = DataLoader(dataset, batch_size=6, num_workers=2)
        encoder = nn.Sequential(
            nn.Conv2d(3, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(),
            nn.Conv2d(64, 96, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        ).eval()
        with torch.inference_mode(), open(os.path.join(folder, "embeddings.bin"), "wb") as out:
            for number, batch in enumerate(loader):
                out.write(encoder(batch).numpy().tobytes())
                if number % 50 == 0:
                    print(f"batch {number} of {len(loader)}", flush=True)


if __name__ == "__main__":
    main()
