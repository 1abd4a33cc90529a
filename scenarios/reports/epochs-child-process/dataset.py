"""Compressed images on disk, and the input pipeline of one epoch: it decodes each image once and keeps it"""

import os
import zlib

import numpy as np
import torch

SIDE = 144


def write_images(folder, count):
    random = np.random.default_rng(0)
    waves = np.sin(np.linspace(0, 12, SIDE))
    for number in range(count):
        shades = waves[:, None, None] * random.random(3) * 60 + waves[None, :, None] * 40
        image = (shades + 120).astype(np.uint8)
        image += random.integers(0, 8, image.shape, np.uint8)
        with open(os.path.join(folder, f"{number:05}_{number % 5}.img"), "wb") as file:
            file.write(zlib.compress(image.tobytes(), 6))


class CachedImages:
    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".img"))
        self.decoded = {}

    def __len__(self):
        return len(self.paths)

    def get(self, index):
        if index not in self.decoded:
            with open(self.paths[index], "rb") as file:
                pixels = np.frombuffer(zlib.decompress(file.read()), np.uint8).reshape(SIDE, SIDE, 3)
            image = torch.from_numpy(pixels.copy()).permute(2, 0, 1).float()
            self.decoded[index] = (image - image.mean()) / image.std()
        return self.decoded[index], int(self.paths[index].rpartition("_")[2][0])

    def batches(self, size, order):
        for start in range(0, len(order), size):
            images, labels = zip(*(self.get(int(index)) for index in order[start : start + size]))
            yield torch.stack(images), torch.tensor(labels)
