"""Trains a small model, and keeps the loss of each step in one of several ways."""

import sys
import time

import torch

net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def train(way, steps):
    losses, total = [], 0
    for _ in range(steps):
        loss = net(torch.randn(512, 256)).pow(2).mean()
        optimizer.zero_grad()
        if way == "list":
            losses.append(loss)
        elif way == "sum":
            total = total + loss
        elif way == "number":
            loss.backward()
            losses.append(loss.item())
        else:
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        time.sleep(0.05)
    return losses, total


train(sys.argv[1], int(sys.argv[2]))
