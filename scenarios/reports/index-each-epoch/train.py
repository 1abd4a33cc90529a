"""Matches pictures of places: a sample is a query, and pictures of the same group, which an index finds."""

import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS = 34.0
GROUPS, PICTURES_PER_GROUP, SIDE = 300, 24, 32
SAMPLES_PER_EPOCH = 1200


def write_groups(folder):
    for group in range(GROUPS):
        rng = np.random.default_rng(group)
        pictures = rng.integers(0, 255, (PICTURES_PER_GROUP, 3, SIDE, SIDE), np.uint8)
        np.save(os.path.join(folder, f"group-{group:05d}.npy"), pictures)


class Places(Dataset):
    def __init__(self, folder):
        self.folder, self.index = folder, {}

    def __len__(self):
        return SAMPLES_PER_EPOCH

    def indexed(self, group):
        """The pictures of a group, normalized, and their neighbours. Only part of the groups comes up in an epoch."""
        if group not in self.index:
            pictures = np.load(os.path.join(self.folder, f"group-{group:05d}.npy")).astype(np.float32) / 255
            flat = pictures.reshape(len(pictures), -1)
            flat = (flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True)
            likeness = flat @ flat.T / flat.shape[1]
            self.index[group] = flat.reshape(pictures.shape), np.argsort(-likeness, 1)
        return self.index[group]

    def __getitem__(self, i):
        rng = np.random.default_rng(torch.randint(1 << 30, ()).item())
        pictures, neighbours = self.indexed(int(rng.integers(0, GROUPS * 2 // 3)))
        query = int(rng.integers(0, PICTURES_PER_GROUP))
        others = pictures[neighbours[query, 1:6]]
        far = self.indexed(int(rng.integers(0, GROUPS * 2 // 3)))[0][query]
        return torch.from_numpy(pictures[query]), torch.from_numpy(others.mean(0)), torch.from_numpy(far)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4608, 64)
        )

    def forward(self, x):
        return nn.functional.normalize(self.layers(x))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_groups(folder)
        loader = DataLoader(Places(folder), 8, num_workers=2)
        model = Embedder()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        end, epoch = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            for query, near, far in loader:
                loss = nn.functional.triplet_margin_loss(model(query), model(near), model(far))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
            epoch += 1


if __name__ == "__main__":
    main()
