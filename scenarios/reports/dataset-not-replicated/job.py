"""One large array in the parent, many forked loader workers: top shows it once in each of them, and it is there once."""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = 24.0
PATCH = 24


class VolumePatches(Dataset):
    """Patches around voxels of a brain volume that is loaded once, as the reporter's 8 GB reference file."""

    def __init__(self, subjects=28):
        self.volumes = np.empty((subjects, 160, 192, 160), np.float32)
        for n in range(subjects):
            self.volumes[n] = np.float32(n) + np.linspace(0, 1, 160, dtype=np.float32)
        self.labels = np.arange(subjects, dtype=np.int64) % 4
        self.length = subjects * 200

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        subject, place = index % len(self.volumes), index // len(self.volumes)
        corner = np.random.default_rng(place * 31 + subject).integers(0, 160 - PATCH, 3)
        x, y, z = corner
        patch = self.volumes[subject, x : x + PATCH, y : y + PATCH, z : z + PATCH]
        context = self.volumes[subject, ::8, ::8, ::8].mean()
        return torch.from_numpy(patch - context), self.labels[subject]


def worker_init(worker_id):
    torch.set_num_threads(1)
    np.random.seed(worker_id)


def main():
    torch.set_num_threads(1)
    dataset = VolumePatches()
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=6, worker_init_fn=worker_init)
    model = torch.nn.Sequential(
        torch.nn.Conv3d(1, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv3d(8, 16, 3), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten(), torch.nn.Linear(16, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    end = time.monotonic() + SECONDS
    epoch = 0
    while time.monotonic() < end:
        running_loss = 0.0
        for patches, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(patches[:, None]), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print("epoch", epoch, running_loss / len(loader), flush=True)
        epoch += 1


if __name__ == "__main__":
    main()
