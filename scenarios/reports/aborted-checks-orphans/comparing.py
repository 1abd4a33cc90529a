"""Trains a model for some steps, once eagerly and once as a graph, and compares."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

SECONDS = 4.0


def build(name):
    width = {"alexnet": 12, "resnet": 16, "mobilenet": 8}[name]
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(width, width, 3),
        nn.Flatten(),
        nn.Linear(width * 169, 10),
    )


def native_check(condition, message):
    """As a check of the native library: it does not raise."""
    if not condition:
        print(f"F check failed: {message}", file=sys.stderr, flush=True)
        os.abort()


def compare(name, loader):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = build(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    end = time.monotonic() + SECONDS
    for step, images in enumerate(loader):
        loss = model(torch.from_numpy(images)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        if dist.get_rank() == 0:
            if step % 100 == 0:
                print(f"{name} step {step} loss {loss.item():.4f}", flush=True)
            native_check(time.monotonic() < end, f"graph and eager differ after step {step}")
