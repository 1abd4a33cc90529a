"""Makes and stops a trainable for each configuration of the environment, as the tests of the environment do"""

import time

import numpy as np
import torch
from torch import nn
from util_monitor import UtilMonitor

torch.set_num_threads(1)


class VectorCartPole:
    """Sixteen poles at once"""

    def __init__(self, config):
        self.length, self.force = config["length"], config["force"]
        self.generator = np.random.default_rng(config["seed"])
        self.state = self.generator.uniform(-0.05, 0.05, (16, 4)).astype(np.float32)

    def step(self, actions):
        x, speed, angle, turn = self.state.T
        push = np.where(actions == 1, self.force, -self.force)
        bend = (9.8 * np.sin(angle) - np.cos(angle) * push / 1.1) / (self.length * 1.3)
        moved = np.stack([x + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * bend], 1)
        over = (np.abs(moved[:, 0]) > 2.4) | (np.abs(moved[:, 2]) > 0.21)
        moved[over] = self.generator.uniform(-0.05, 0.05, (int(over.sum()), 4))
        self.state = moved.astype(np.float32)
        return self.state, np.where(over, 0.0, 1.0).astype(np.float32)


class PPOTrainer:
    def __init__(self, config):
        self.config = config
        self.env = VectorCartPole(config)
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self.started = time.monotonic()
        self._monitor = UtilMonitor(start=True)

    def rollout(self, length=48):
        states, actions, rewards = [], [], []
        for _ in range(length):
            state = torch.from_numpy(self.env.state)
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=self.policy(state)[:, :2]).sample()
            _, reward = self.env.step(action.numpy())
            states.append(state)
            actions.append(action)
            rewards.append(torch.from_numpy(reward))
        return torch.stack(states), torch.stack(actions), torch.stack(rewards)

    def train(self):
        states, actions, rewards = self.rollout()
        returns = rewards.flip(0).cumsum(0).flip(0) / len(rewards)
        for _ in range(4):
            out = self.policy(states)
            advantage = (returns - out[..., 2]).detach()
            chosen = torch.distributions.Categorical(logits=out[..., :2]).log_prob(actions)
            loss = -(chosen * advantage).mean() + 0.5 * (returns - out[..., 2]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
            self.optimizer.step()
        return {
            "reward": float(rewards.mean()),
            "time_total_s": time.monotonic() - self.started,
            "perf": self._monitor.get_data(),
        }

    def stop(self):
        self.env = None
        self.optimizer = None


def main():
    number, started = 0, time.monotonic()
    while time.monotonic() - started < 60.0:
        number += 1
        config = {"length": 0.4 + 0.01 * (number % 20), "force": 8.0 + number % 5, "seed": number}
        trainable = PPOTrainer(config)
        result = {"time_total_s": 0.0}
        while result["time_total_s"] < 0.45:
            result = trainable.train()
        trainable.stop()
        if number % 5 == 0:
            print(f"{number} trainables, reward {result['reward']:.3f}", flush=True)


if __name__ == "__main__":
    main()
