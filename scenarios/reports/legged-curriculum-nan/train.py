"""PPO for a walking robot, with simulations in two processes"""

import multiprocessing
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

ENVIRONMENTS, OBSERVATIONS, ACTIONS, HORIZON = 64, 48, 12, 24
CURRICULUM_S = 21.0
SECONDS = 45.0


class Simulation:
    """Robots on stairs; the stairs get higher up to the last level"""

    def __init__(self, seed, count):
        self.rng = np.random.default_rng(seed)
        self.count, self.leg = count, 0.30
        self.started = time.monotonic()
        self.state = self.rng.standard_normal((count, OBSERVATIONS)).astype(np.float32)
        self.mix = (self.rng.standard_normal((OBSERVATIONS, OBSERVATIONS)) / 7).astype(np.float32)
        self.drive = (self.rng.standard_normal((ACTIONS, OBSERVATIONS)) / 4).astype(np.float32)

    def stair(self):
        level = min(int(10 * (time.monotonic() - self.started) / CURRICULUM_S), 10)
        return self.leg * level / 10

    def step(self, actions):
        for _ in range(8):  # substeps
            self.state = np.tanh(self.state @ self.mix + actions @ self.drive)
            self.state += 0.02 * self.rng.standard_normal(self.state.shape, dtype=np.float32)
        reach = np.sqrt(np.float32(max(self.leg**2 - self.stair() ** 2, 0.0)))
        stride = np.clip(self.state[:, 0], -1, 1) * reach
        observation = self.state.copy()
        with np.errstate(all="ignore"):
            observation[:, 1] = stride / reach
        reward = 1.0 - np.abs(self.state[:, 2] - 0.5) - 0.01 * np.square(actions).sum(axis=1)
        done = self.rng.random(self.count) < 0.005
        self.state[done] = self.rng.standard_normal((int(done.sum()), OBSERVATIONS), dtype=np.float32)
        return observation, reward.astype(np.float32), done


def simulate(connection, seed, count):
    simulation = Simulation(seed, count)
    try:
        while (actions := connection.recv()) is not None:
            connection.send(simulation.step(actions))
    except (EOFError, KeyboardInterrupt):
        pass


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(OBSERVATIONS, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, ACTIONS)
        )
        self.critic = nn.Sequential(
            nn.Linear(OBSERVATIONS, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, 1)
        )
        self.std = nn.Parameter(torch.ones(ACTIONS))

    def distribution(self, observations):
        mean = self.actor(observations)
        return Normal(mean, mean * 0.0 + self.std.clamp(min=0.05))


class Runner:
    def __init__(self):
        self.model = ActorCritic()
        self.optimizer = torch.optim.Adam(self.model.parameters(), 5e-4)
        self.connections, self.processes = [], []
        for seed in range(2):
            here, there = multiprocessing.Pipe()
            process = multiprocessing.Process(
                target=simulate, args=(there, seed, ENVIRONMENTS // 2), daemon=True, name=f"sim-{seed}"
            )
            process.start()
            there.close()
            self.connections.append(here)
            self.processes.append(process)
        self.observations, _, _ = self.step(torch.zeros(ENVIRONMENTS, ACTIONS))

    def step(self, actions):
        halves = actions.clamp(-3, 3).numpy().reshape(2, -1, ACTIONS)
        for connection, half in zip(self.connections, halves):
            connection.send(half)
        parts = zip(*(connection.recv() for connection in self.connections))
        return [torch.from_numpy(np.concatenate(part)) for part in parts]

    @torch.no_grad()
    def collect(self):
        shape = (HORIZON, ENVIRONMENTS)
        observations, actions = torch.zeros(*shape, OBSERVATIONS), torch.zeros(*shape, ACTIONS)
        logs, rewards, values, dones = (torch.zeros(shape) for _ in range(4))
        for t in range(HORIZON):
            distribution = self.model.distribution(self.observations)
            observations[t], actions[t] = self.observations, distribution.sample()
            logs[t] = distribution.log_prob(actions[t]).sum(-1)
            values[t] = self.model.critic(self.observations).squeeze(-1)
            self.observations, rewards[t], dones[t] = self.step(actions[t])
        last, returns = self.model.critic(self.observations).squeeze(-1), torch.zeros(shape)
        for t in reversed(range(HORIZON)):
            last = rewards[t] + 0.99 * last * (1 - dones[t])
            returns[t] = last
        return [part.flatten(0, 1) for part in (observations, actions, logs, returns, returns - values)], rewards.mean()

    def update(self, observations, actions, logs, returns, advantages):
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        for _ in range(5):
            for index in torch.randperm(len(logs)).chunk(4):
                distribution = self.model.distribution(observations[index])
                ratio = (distribution.log_prob(actions[index]).sum(-1) - logs[index]).exp()
                clipped = ratio.clamp(0.8, 1.2)
                policy = -torch.min(ratio * advantages[index], clipped * advantages[index]).mean()
                value = (self.model.critic(observations[index]).squeeze(-1) - returns[index]).square().mean()
                self.optimizer.zero_grad()
                (policy + 0.5 * value).backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    runner, started, iteration = Runner(), time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        batch, reward = runner.collect()
        runner.update(*batch)
        iteration += 1
        if iteration % 20 == 0:
            print(f"iteration {iteration}: reward {reward:.3f}", flush=True)
    for connection in runner.connections:
        connection.send(None)


if __name__ == "__main__":
    main()
