"""Trains a driving policy; the maps are loaded before the workers start"""

import tempfile
import time

import numpy as np
import torch
from maps import MapCache, write_maps
from torch import nn
from vector import FEATURES, Multiprocessing

torch.set_num_threads(1)
MAPS, WORKERS, AGENTS, HORIZON = 44, 3, 6, 40
SECONDS, MAP_S, STEP_S = 24.0, 0.12, 0.022


class Policy(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, 3), nn.Linear(width, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.actor(hidden), self.critic(hidden)[..., 0]


def preload(cache):
    for number in range(MAPS):
        until = time.monotonic() + MAP_S
        loaded = cache.get(number)
        while time.monotonic() < until:
            np.abs(loaded.points[:1000, None, :2] - loaded.points[None, :200, :2]).sum(2).min(1)
    print(f"{MAPS} maps, {sum(one.near.nbytes + one.points.nbytes for one in cache.maps.values())} bytes", flush=True)


def rollout(vector, model, seen):
    steps = []
    until = time.monotonic()
    for _ in range(HORIZON):
        until += STEP_S
        with torch.no_grad():
            logits, _ = model(seen)
            actions = torch.distributions.Categorical(logits=logits).sample()
            observations, rewards = vector.step(actions.numpy())
            while time.monotonic() < until:
                model(seen)
        steps.append((seen, actions, torch.from_numpy(rewards.copy())))
        seen = torch.from_numpy(observations.copy())
    return [torch.stack(parts) for parts in zip(*steps)], seen


def update(model, optimizer, seen, actions, rewards):
    returns, later = torch.empty_like(rewards), torch.zeros(rewards.shape[1:])
    for step in reversed(range(HORIZON)):
        later = rewards[step] + 0.95 * later
        returns[step] = later
    logits, values = model(seen)
    chances = torch.distributions.Categorical(logits=logits)
    loss = -(chances.log_prob(actions) * (returns - values).detach()).mean()
    loss = loss + 0.5 * nn.functional.smooth_l1_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_maps(folder, MAPS)
        cache = MapCache(folder)
        preload(cache)
    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    vector = Multiprocessing(cache, MAPS, WORKERS, AGENTS)
    seen = torch.from_numpy(vector.observations.copy())
    end, updates = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        parts, seen = rollout(vector, model, seen)
        loss = update(model, optimizer, *parts)
        updates += 1
        if updates % 5 == 0:
            print(f"{updates} updates, loss {loss:.3f}, reward {parts[2].mean().item():.3f}", flush=True)
    vector.close()


if __name__ == "__main__":
    main()
