"""Validation adds up two losses of each batch, with their graphs."""

import sys
import time

import torch

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))

    def forward(self, x):
        z = self.encoder(x)
        return ((z - x) ** 2).mean(), 1e-3 * z.abs().mean()


def batches(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        x = torch.randn(1400, 1400)
        x = torch.tanh(x @ x)
        yield x[:96, :256].contiguous()


def train(model, optimizer):
    for x in batches(3):
        loss, reg = model(x)
        optimizer.zero_grad()
        (loss + reg).backward()
        optimizer.step()


def validate(model):
    model.eval()
    total = torch.zeros(())
    for x in batches(SECONDS):
        loss, reg = model(x)
        total = total + loss + reg
    return float(total)


torch.set_num_threads(1)
model = Model()
train(model, torch.optim.Adam(model.parameters()))
validate(model)
