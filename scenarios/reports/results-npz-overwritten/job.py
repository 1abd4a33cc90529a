"""A sweep writes its results to one .npz file after each setting, and compares them with those of the last sweep."""

import os
import tempfile

import numpy as np
import torch
from torch import nn

SETTINGS, STEPS = 6, 900


def fit(rate, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(64, 192), nn.Tanh(), nn.Linear(192, 192), nn.Tanh(), nn.Linear(192, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    truth, losses = torch.randn(64), []
    for _ in range(STEPS):
        rows = torch.randn(256, 64)
        loss = (net(rows)[:, 0] - torch.sin(rows @ truth)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def first_sweep(path):
    rng = np.random.default_rng(0)
    curves = {f"setting{n}": np.linspace(1, 0.4, STEPS) + rng.normal(0, 0.01, STEPS) for n in range(SETTINGS)}
    np.savez_compressed(path, **curves)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.npz")
        first_sweep(path)
        before, curves = np.load(path), {}
        for number in range(SETTINGS):
            curves[f"setting{number}"] = fit(0.01 * (number + 1), number)
            np.savez_compressed(path, **curves)
            print(f"setting {number}: {curves[f'setting{number}'][-20:].mean():.4f}", flush=True)
        for name, curve in curves.items():
            print(f"{name}: {curve[-20:].mean():.4f}, before {before[name][-20:].mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
