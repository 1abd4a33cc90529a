"""Learns how rough paths are from their signatures: the Hurst exponent of fractional Brownian motion"""

import time

import torch
from signature import Augment, signature
from torch import nn

torch.set_num_threads(1)
PATHS, LENGTH, LEARNT, STEPS, STEP_S = 128, 256, 6, 280, 0.1
CHANNELS = 2 + LEARNT


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.augment = Augment(1, LEARNT)
        self.head = nn.Sequential(nn.Linear(CHANNELS + CHANNELS**2, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, path):
        return torch.sigmoid(self.head(signature(self.augment(path))))[:, 0]


class Paths:
    """Paths of ten exponents, each with the root of its covariance"""

    def __init__(self):
        self.exponents = torch.linspace(0.2, 0.8, 10)
        times = torch.arange(1, LENGTH, dtype=torch.float64) / LENGTH
        self.roots = []
        for exponent in 2 * self.exponents.double():
            apart = (times[:, None] - times[None]).abs() ** exponent
            covariance = (times[:, None] ** exponent + times[None] ** exponent - apart) / 2
            self.roots.append(torch.linalg.cholesky(covariance + 1e-9 * torch.eye(LENGTH - 1)).float())

    def draw(self):
        which = torch.randint(0, len(self.roots), (PATHS,))
        noise = torch.randn(PATHS, LENGTH - 1)
        path = torch.zeros(PATHS, LENGTH)
        for number, root in enumerate(self.roots):
            chosen = which == number
            path[chosen, 1:] = noise[chosen] @ root.T
        return path[..., None], self.exponents[which]


def main():
    torch.manual_seed(0)
    model, paths = Model(), Paths()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begin, running, drawn = time.monotonic(), 0.0, 0
    for step in range(1, STEPS + 1):
        path, exponent = paths.draw()
        loss = nn.functional.mse_loss(model(path), exponent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = loss.item() if step == 1 else 0.95 * running + 0.05 * loss.item()
        # More paths for the statistics of the sampler
        while time.monotonic() < begin + step * STEP_S:
            paths.draw()
            drawn += PATHS
        if step % 40 == 0:
            print(f"step {step} loss {running:.4f}, {drawn} paths drawn", flush=True)


if __name__ == "__main__":
    main()
