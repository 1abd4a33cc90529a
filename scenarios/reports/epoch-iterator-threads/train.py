"""Trains a small network; the trainer asks the data module for a loader at each epoch, and limits its batches."""

import os
import tempfile
import time

import torch
from loader import Loader, PackedImages
from torch import nn

SECONDS = 28.0


class DataModule:
    def __init__(self, folder):
        self.images = PackedImages(os.path.join(folder, "train.pack"), 6000)

    def train_dataloader(self, epoch):
        return Loader(self.images, batch_size=64, batches_ahead=3, seed=epoch)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(32, 10),
        )

    def forward(self, x):
        return self.layers(x)


class Trainer:
    def __init__(self, limit_train_batches, seconds):
        self.limit_train_batches = limit_train_batches
        self.end = time.monotonic() + seconds

    def fit(self, model, data):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        epoch = 0
        while time.monotonic() < self.end:
            loader = data.train_dataloader(epoch)
            total = 0.0
            for number, (images, labels) in enumerate(loader):
                if number == self.limit_train_batches:
                    break
                loss = nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / self.limit_train_batches:.3f}", flush=True)
            epoch += 1


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(limit_train_batches=20, seconds=SECONDS).fit(Network(), DataModule(folder))


if __name__ == "__main__":
    main()
