"""Trains a rover with a camera, which has to find its way before its battery is empty"""

import time

import numpy as np
import torch
from torch import nn
from vector import AsyncVectorEnv

torch.set_num_threads(1)
ROVERS, SIDE, HORIZON, UPDATES, STEP_S = 4, 40, 64, 20, 0.04


class Rover:
    def __init__(self, number):
        self.random = np.random.default_rng(number)
        self.ground = np.cumsum(np.cumsum(self.random.normal(size=(400, 400)), 0), 1).astype(np.float32)
        self.ground /= np.abs(self.ground).max()
        self.capacity = 620.0 + 45 * number

    def camera(self):
        row, column = self.place.astype(int)
        patch = self.ground[row : row + SIDE, column : column + SIDE]
        return np.stack([patch, patch - patch.mean(), np.full_like(patch, self.battery / self.capacity)])

    def reset(self):
        self.place, self.battery = self.random.uniform(0, 360, 2), self.capacity
        return self.camera()

    def step(self, action):
        before = self.ground[tuple(self.place.astype(int))]
        shift = np.array([(2, 0), (-2, 0), (0, 2), (0, -2)])[action]
        self.place = np.clip(self.place + shift, 0, 359)
        climbed = self.ground[tuple(self.place.astype(int))] - before
        self.battery -= 1 + 0.5 * abs(climbed)
        reward = np.array([climbed], np.float32)
        return self.camera(), reward, self.battery <= 0, False


class Policy(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=3),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(50 * width, 64),
            nn.ReLU(),
        )
        self.actor, self.critic = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, frames):
        hidden = self.body(frames)
        return self.actor(hidden), self.critic(hidden)[:, 0]


def collect(env, model, frames):
    steps, until = [], time.monotonic()
    for _ in range(HORIZON):
        until += STEP_S
        with torch.no_grad():
            seen = torch.from_numpy(frames)
            logits, _ = model(seen)
            actions = torch.distributions.Categorical(logits=logits).sample()
            while time.monotonic() < until:
                model(seen.flip(-1))
        frames, rewards, terminations, _ = env.step(actions.tolist())
        going = torch.from_numpy(~terminations).float()
        steps.append((seen, actions, torch.from_numpy(rewards).float().view(ROVERS), going))
    return frames, [torch.stack(parts) for parts in zip(*steps)]


def update(model, optimizer, seen, actions, rewards, going):
    returns, later = torch.empty_like(rewards), torch.zeros(ROVERS)
    for step in reversed(range(HORIZON)):
        later = rewards[step] + 0.97 * going[step] * later
        returns[step] = later
    logits, values = model(seen.flatten(0, 1))
    chances = torch.distributions.Categorical(logits=logits)
    gain = (returns.flatten() - values).detach()
    loss = -(chances.log_prob(actions.flatten()) * gain).mean() + (returns.flatten() - values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    env = AsyncVectorEnv(Rover, ROVERS, (3, SIDE, SIDE))
    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    frames = env.reset()
    for number in range(1, UPDATES + 1):
        frames, parts = collect(env, model, frames)
        loss = update(model, optimizer, *parts)
        print(f"update {number}: loss {loss:.4f}, reward {parts[2].mean().item():.5f}", flush=True)
    env.close()


if __name__ == "__main__":
    main()
