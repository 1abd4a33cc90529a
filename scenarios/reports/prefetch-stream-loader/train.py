"""Trains a small residual network; prints the memory of the GPU and of the host at the end of each epoch"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from loader import autocast, create_loader

SECONDS, SIZE, CLASSES, BATCH, WORKERS = 24.0, 96, 10, 64, 4


class Images(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, index))
        target = int(rng.integers(CLASSES))
        image = rng.integers(0, 128, (3, SIZE, SIZE), dtype=np.uint8)
        image[:, 8 * target : 8 * target + 16] += 100
        return image, target


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        out = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(out)) + self.skip(x))


def network():
    body = [Block(3, 64, 2), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = total = 0
    for images, target in loader:
        with autocast(True):
            right += (model(images).argmax(1) == target).sum().item()
        total += len(target)
    return right / total


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    model = network().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    training = create_loader(Images(6400, 1), BATCH, True, WORKERS)
    validation = create_loader(Images(1000, 2), 2 * BATCH, False, WORKERS)
    started, epoch = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        model.train()
        for images, target in training:
            with autocast(True):
                loss = nn.functional.cross_entropy(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy, epoch = validate(model, validation), epoch + 1
        reserved = torch.cuda.memory_reserved() / 2**20
        print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.3f} GPU {reserved:.0f} MiB "
              f"host {resident():.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
