"""The trainer: keeps the trajectories in a replay buffer, and fits a critic to them"""

import queue
import time

import numpy as np
import torch
from sampler import CHANNELS, SIDE
from torch import nn

torch.set_num_threads(1)
CAPACITY, BATCH, LONGEST_S = 7000, 64, 60.0


class ReplayBuffer:
    def __init__(self):
        shape = (CAPACITY, CHANNELS, SIDE, SIDE)
        self.observations, self.rewards = np.zeros(shape, np.float32), np.zeros(CAPACITY, np.float32)
        self.size = self.pointer = 0

    def push_trajectory(self, observations, rewards):
        for observation, reward in zip(observations, rewards):
            self.observations[self.pointer], self.rewards[self.pointer] = observation, reward
            self.pointer = (self.pointer + 1) % CAPACITY
            self.size = min(self.size + 1, CAPACITY)

    def sample(self, source):
        chosen = source.integers(0, self.size, BATCH)
        return torch.from_numpy(self.observations[chosen]), torch.from_numpy(self.rewards[chosen])


def train(trajectories, samplers):
    """Trains as long as all samplers are there"""
    torch.manual_seed(0)
    source, buffer = np.random.default_rng(5), ReplayBuffer()
    critic = nn.Sequential(
        nn.Conv2d(CHANNELS, 8, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(32), nn.ReLU(), nn.Linear(32, 1)
    )
    critic(torch.zeros(1, CHANNELS, SIDE, SIDE))
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    received, updates, end = 0, 0, time.monotonic() + LONGEST_S
    while all(sampler.is_alive() for sampler in samplers) and time.monotonic() < end:
        try:
            buffer.push_trajectory(*trajectories.get(timeout=0.05))
            received += 1
        except queue.Empty:
            pass
        if buffer.size < BATCH:
            continue
        observations, rewards = buffer.sample(source)
        loss = nn.functional.smooth_l1_loss(critic(observations)[:, 0], rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % 100 == 0:
            print(f"updates {updates} | trajectories {received} | buffer {buffer.size}/{CAPACITY}", flush=True)
