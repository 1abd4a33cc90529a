"""Trains a small network for segmentation on patches of unpacked cases."""

import os
import tempfile

import numpy as np
import torch
from augmenter import CaseLoader, NonDetMultiThreadedAugmenter
from torch import nn

CASES, SIDE, PATCH = 14, 72, (40, 40, 40)
EPOCHS, STEPS = 40, 25


def unpack(folder):
    """Each case becomes an array of image and segmentation. The last one stopped in the middle, in another run."""
    names = []
    for n in range(CASES):
        rng = np.random.default_rng(n)
        image = rng.normal(0, 1, (SIDE, SIDE, SIDE)).astype(np.float32)
        data = np.stack([image, (np.cumsum(image, 0) > 0).astype(np.float32)])
        path = os.path.join(folder, f"case_{n:03d}.npy")
        np.save(path, data)
        if n == CASES - 1:
            os.truncate(path, os.path.getsize(path) * 3 // 5)
        names.append(f"case_{n:03d}")
    return names


class Network(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Conv3d(1, width, 3, stride=2, padding=1)
        self.middle = nn.Conv3d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose3d(width, 2, 2, stride=2)

    def forward(self, x):
        return self.up(torch.relu(self.middle(torch.relu(self.down(x)))))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        names = unpack(folder)
        loaders = [CaseLoader(folder, names, 2, PATCH, seed) for seed in range(2)]
        batches = NonDetMultiThreadedAugmenter(loaders)
        network = Network()
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-2, momentum=0.99, nesterov=True)
        for epoch in range(EPOCHS):
            total = 0.0
            for _ in range(STEPS):
                patches, labels = next(batches)
                loss = nn.functional.cross_entropy(network(torch.from_numpy(patches)), torch.from_numpy(labels))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} train_loss {total / STEPS:.4f}", flush=True)


if __name__ == "__main__":
    main()
