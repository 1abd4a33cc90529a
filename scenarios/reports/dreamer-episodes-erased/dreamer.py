"""Learns a model of a task from the images of its episodes"""

import tempfile
import time

import numpy as np
import torch
from torch import nn

from tools import Episodes

torch.set_num_threads(1)
SECONDS, EPISODE_S, STEPS, LIMIT, SIDE = 40.0, 0.35, 500, 15_000, 64


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 12, 4, stride=4), nn.ELU(), nn.Conv2d(12, 24, 4, stride=4), nn.ELU(), nn.Flatten()
        )
        self.cell = nn.GRU(24 * 16, 96, batch_first=True)
        self.reward = nn.Linear(96, 1)
        self.next = nn.Linear(96, 24 * 16)

    def loss(self, image, reward):
        batch, length = reward.shape
        embed = self.encoder(image.flatten(0, 1)).view(batch, length, -1)
        state, _ = self.cell(embed)
        ahead = (self.next(state[:, :-1]) - embed[:, 1:].detach()).square().mean()
        return (self.reward(state)[..., 0] - reward).square().mean() + ahead


def simulate(number):
    """An episode of a ball over a background"""
    generator = np.random.default_rng(number)
    image = generator.integers(0, 40, (STEPS, 3, SIDE, SIDE), np.uint8)
    place = np.cumsum(generator.integers(-2, 3, (STEPS, 2)), axis=0) % (SIDE - 8)
    for step, (row, column) in enumerate(place):
        image[step, :, row : row + 8, column : column + 8] = 220
    return {"image": image, "reward": (place[:, 0] / SIDE).astype(np.float32)}


def main():
    torch.manual_seed(0)
    model, generator = WorldModel(), np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    started, number = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        episodes = Episodes(folder, LIMIT)
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + EPISODE_S
            episodes.add(number, simulate(number))
            number += 1
            while True:
                batch = episodes.sample(8, 20, generator)
                image = torch.from_numpy(batch["image"]).float() / 255.0
                loss = model.loss(image, torch.from_numpy(batch["reward"]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            if number % 10 == 0:
                print(f"episode {number}: {episodes.steps} steps kept, loss {loss.item():.4f}", flush=True)
    print(f"{number} episodes", flush=True)


if __name__ == "__main__":
    main()
