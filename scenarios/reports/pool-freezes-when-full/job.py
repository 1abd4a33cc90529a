"""Trains a classifier of X-ray pictures; decoded pictures are kept in a pool as far as it reaches"""

import multiprocessing
import os
import tempfile
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from memcache import MemCacheHandlerForMP

torch.set_num_threads(1)
MEM_CACHE_SIZE = 180 << 20
SAMPLES, SIDE, BATCH, BATCH_S = 1040, 384, 16, 0.32
SECONDS = 31.0


def write_pictures(folder):
    generator = np.random.default_rng(0)
    for number in range(SAMPLES):
        coarse = generator.integers(0, 230, (24, 24, 3), np.uint8)
        coarse[: 12 * (number % 2)] //= 2
        picture = coarse.repeat(SIDE // 24, 0).repeat(SIDE // 24, 1)
        with open(os.path.join(folder, f"{number:05d}.z"), "wb") as file:
            file.write(zlib.compress(picture.tobytes(), 1))


class XRays(Dataset):
    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def __len__(self):
        return SAMPLES

    def load(self, number):
        picture = self.cache.get(number)
        if picture is None:
            with open(os.path.join(self.folder, f"{number:05d}.z"), "rb") as file:
                picture = np.frombuffer(zlib.decompress(file.read()), np.uint8).reshape(SIDE, SIDE, 3)
            self.cache.put(number, picture)
        return picture

    def __getitem__(self, number):
        top, left = torch.randint(0, SIDE - 128, (2,)).tolist()
        crop = self.load(number)[top : top + 128, left : left + 128]
        return torch.from_numpy(crop.copy()).permute(2, 0, 1).float().div_(255), number % 2


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 2),
        )

    def forward(self, pictures):
        return self.layers(pictures)


def main():
    multiprocessing.set_start_method("fork")
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(folder)
        cache = MemCacheHandlerForMP(MEM_CACHE_SIZE)
        loader = DataLoader(XRays(folder, cache), BATCH, shuffle=True, num_workers=2, persistent_workers=True)
        started, epoch = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            for pictures, labels in loader:
                until = time.monotonic() + BATCH_S
                while True:
                    loss = nn.functional.cross_entropy(network(pictures), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    if time.monotonic() > until:
                        break
                if time.monotonic() - started > SECONDS:
                    break
            epoch += 1
            print(f"epoch {epoch}: loss {loss.item():.4f}; the cache {cache}", flush=True)
        del loader
        cache.close()


if __name__ == "__main__":
    main()
