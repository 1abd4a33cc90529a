"""Trains a policy by self-play against former versions of itself"""

import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

from arena import FEATURES, MATCHES
from ghost import GhostTrainer

torch.set_num_threads(1)
SNAPSHOTS, SNAPSHOT_S, WINDOW, HORIZON = 33, 0.8, 10, 8
HERE = os.path.dirname(os.path.abspath(__file__))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 2000), nn.Tanh(), nn.Linear(2000, 2100), nn.Tanh())
        self.action, self.value = nn.Linear(2100, 4), nn.Linear(2100, 1)

    def forward(self, seen):
        features = self.body(seen)
        return torch.distributions.Categorical(logits=self.action(features)), self.value(features).squeeze(-1)


class Environment:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "arena.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def receive(self):
        """What both sides see, and the first side's rewards"""
        seen = np.frombuffer(self.process.stdout.read(2 * MATCHES * FEATURES * 4), np.float32).copy()
        rewards = np.frombuffer(self.process.stdout.read(MATCHES * 4), np.float32).copy()
        return torch.from_numpy(seen).view(2, MATCHES, FEATURES), torch.from_numpy(rewards)

    def send(self, own, other):
        self.process.stdin.write(torch.stack([own, other]).to(torch.int8).numpy().tobytes())
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def play(environment, policy, opponent, seen):
    trajectory = []
    with torch.no_grad():
        for _ in range(HORIZON):
            own, _ = policy(seen[0])
            other, _ = opponent(seen[1])
            action = own.sample()
            environment.send(action, other.sample())
            following, rewards = environment.receive()
            trajectory.append((seen[0], action, rewards))
            seen = following
        ahead = policy(seen[0])[1]
    return trajectory, ahead, seen


def update(policy, optimizer, trajectory, ahead):
    returns = []
    for _, _, rewards in reversed(trajectory):
        ahead = rewards + 0.97 * ahead * (rewards == 0)
        returns.insert(0, ahead)
    distribution, values = policy(torch.cat([seen for seen, _, _ in trajectory]))
    advantage = torch.cat(returns) - values
    log_probabilities = distribution.log_prob(torch.cat([action for _, action, _ in trajectory]))
    loss = -(log_probabilities * advantage.detach()).mean() + 0.5 * advantage.square().mean()
    loss = loss - 0.01 * distribution.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()


def main():
    torch.manual_seed(0)
    policy, opponent = Policy(), Policy().requires_grad_(False)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-4)
    ghost = GhostTrainer(policy, opponent, WINDOW, latest_ratio=0.5)
    environment = Environment()
    seen, _ = environment.receive()
    for number in range(SNAPSHOTS):
        ghost.save_snapshot()
        ghost.swap_snapshot()
        until, wins, losses = time.monotonic() + SNAPSHOT_S, 0, 0
        while time.monotonic() < until:
            trajectory, ahead, seen = play(environment, policy, opponent, seen)
            update(policy, optimizer, trajectory, ahead)
            wins += sum(int((rewards > 0).sum()) for _, _, rewards in trajectory)
            losses += sum(int((rewards < 0).sum()) for _, _, rewards in trajectory)
        ghost.update_elo(wins, losses)
        print(f"snapshot {number}: {wins} to {losses}, elo {ghost.policy_elos[-1]:.0f}", flush=True)
    environment.close()


if __name__ == "__main__":
    main()
