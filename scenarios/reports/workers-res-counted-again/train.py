"""An image set in one array; many loader workers read it, and each shows all of it as its resident memory."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGES, SIDE, SECONDS = 46_000, 56, 24.0


def load_images():
    rng = np.random.default_rng(0)
    images = np.empty((IMAGES, SIDE, SIDE, 3), np.uint8)
    for start in range(0, IMAGES, 1000):
        images[start : start + 1000] = rng.integers(0, 255, (1000, SIDE, SIDE, 3), dtype=np.uint8)
    return images, rng.integers(0, 10, IMAGES)


class InMemoryImages(Dataset):
    def __init__(self):
        self.images, self.labels = load_images()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if index % 2:
            image = image[:, ::-1]
        return torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1), self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2)
        )
        self.classifier = nn.Linear(128, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def main():
    torch.set_num_threads(1)
    loader = DataLoader(InMemoryImages(), batch_size=64, shuffle=True, num_workers=6, persistent_workers=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    end, epoch = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if time.monotonic() > end:
                break
        epoch += 1


if __name__ == "__main__":
    main()
