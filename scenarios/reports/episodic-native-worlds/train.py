"""Episodes of a foraging agent: a new simulator for each, N frames, then the next"""

import ctypes
import time

import numpy as np
import simulator_c
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
SIDE, CHANNELS, FRAMES, FRAME_S, SECONDS = 512, 12, 30, 0.02, 27.0


class Simulator:
    """A never-ending grid world with scents; the agent's position is updated by the native side's callback"""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.position, self.collected = np.array([SIDE // 2, SIDE // 2]), 0
        self._callback = simulator_c.ON_STEP(self._on_step)
        self._handle = simulator_c.new(SIDE * SIDE * CHANNELS * 4, self._callback)
        count = SIDE * SIDE * CHANNELS
        view = (ctypes.c_float * count).from_address(self._handle.patches)
        self.scent = np.frombuffer(view, dtype=np.float32).reshape(CHANNELS, SIDE, SIDE)
        self.scent[:] = self.generator.random((CHANNELS, SIDE, SIDE), dtype=np.float32) * 0.01
        self.action = 0

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.patches:
            self.scent = None
            simulator_c.delete(self._handle, self._callback)

    def _on_step(self, now):
        move = [(0, 1), (1, 0), (0, -1), (-1, 0)][self.action]
        self.position = np.clip(self.position + move, 6, SIDE - 7)
        row, column = self.position
        self.collected += int(self.scent[0, row, column] > 0.005)
        self.scent[now % CHANNELS, row, column] += 1

    def diffuse(self, seconds):
        """Scents spread until the frame's time is over"""
        until, channel = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            plane = self.scent[channel]
            plane[1:-1] += 0.1 * (plane[2:] + plane[:-2] - 2 * plane[1:-1])
            channel = (channel + 1) % CHANNELS

    def move(self, action):
        self.action = action
        simulator_c.step(self._handle)

    def observe(self):
        row, column = self.position
        return torch.from_numpy(self.scent[:, row - 5 : row + 6, column - 5 : column + 6].copy())


def episode(policy, optimizer, seed):
    simulator, log_probs = Simulator(seed), []
    for _ in range(FRAMES):
        distribution = torch.distributions.Categorical(logits=policy(simulator.observe().flatten()))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        simulator.move(int(action))
        simulator.diffuse(FRAME_S)
    loss = -(torch.stack(log_probs).sum() * (simulator.collected / FRAMES - 0.3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return simulator.collected


def main():
    policy = nn.Sequential(nn.Linear(CHANNELS * 11 * 11, 64), nn.Tanh(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        collected = episode(policy, optimizer, number)
        number += 1
        if number % 5 == 0:
            print(f"episode {number}: {collected} items", flush=True)


if __name__ == "__main__":
    main()
