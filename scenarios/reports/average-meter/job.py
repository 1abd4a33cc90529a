"""Every step's loss goes as a tensor into an AverageMeter; in evaluation nothing frees its graph."""

import sys
import time

import torch

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, stride=2), torch.nn.ReLU()
        )

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.meters = {"loss": AverageMeter(), "bpp": AverageMeter()}

    def test_epoch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            noise = torch.randn(1200, 1200)
            noise = noise @ noise
            d = noise[:96, :288].reshape(3, 96, 96)[None] / 100
            out = self.model(d)
            self.meters["bpp"].update(out.abs().mean())
            self.meters["loss"].update((out**2).mean())


torch.set_num_threads(1)
Trainer(Net()).test_epoch(SECONDS)
