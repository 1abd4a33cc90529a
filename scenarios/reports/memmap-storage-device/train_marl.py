"""Trains chasers and evaders, each group with an actor and a critic of its own"""

import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

from storage import LazyMemmapStorage, ReplayBuffer

torch.set_num_threads(1)
SECONDS, ENVIRONMENTS, WIDTH, SIZE, FRAMES_S = 24.0, 256, 96, 120_000, 0.03
DEVICES = {"chasers": "cpu", "evaders": "cuda:0"}


class Particles:
    """Particles in a box that push each other"""

    def __init__(self):
        self.generator = np.random.default_rng(0)
        self.state = self.generator.standard_normal((ENVIRONMENTS, WIDTH)).astype(np.float32)
        self.forces = self.generator.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH

    def step(self, until):
        before = self.state
        action = self.generator.uniform(-1.0, 1.0, (ENVIRONMENTS, 2)).astype(np.float32)
        while True:
            self.state = np.tanh(self.state + self.state @ self.forces + 0.1 * action.mean(axis=1, keepdims=True))
            if time.monotonic() > until:
                break
        reward = -np.abs(self.state[:, :1])
        return {"observation": before, "action": action, "reward": reward, "next": self.state}


def collect(buffers, seconds):
    """Fills the buffers of both groups with random play"""
    environment, end, frames = Particles(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = environment.step(time.monotonic() + FRAMES_S)
        for buffer in buffers.values():
            buffer.extend(data)
        frames += ENVIRONMENTS
        if frames % (100 * ENVIRONMENTS) == 0:
            print(f"{frames} frames", flush=True)


def update(critic, optimizer, batch):
    value = critic(torch.cat([batch["observation"], batch["action"]], dim=1))
    loss = (value - batch["reward"]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        buffers = {}
        for seed, (group, device) in enumerate(DEVICES.items()):
            os.mkdir(os.path.join(folder, group))
            storage = LazyMemmapStorage(SIZE, os.path.join(folder, group), device)
            buffers[group] = ReplayBuffer(storage, 256, seed)
        collect(buffers, SECONDS)
        for group, buffer in buffers.items():
            critic = nn.Sequential(nn.Linear(WIDTH + 2, 64), nn.ReLU(), nn.Linear(64, 1))
            optimizer = torch.optim.Adam(critic.parameters(), 1e-3)
            for step in range(400):
                loss = update(critic, optimizer, buffer.sample())
            print(f"{group}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
