"""Asynchronous policy gradients: two threads sample groups of trajectories while the trainer learns from earlier ones."""

import threading
import time

import numpy as np
import torch
from admission import Admission, AsyncConfig, FinishedGroups
from torch import nn

BATCHES, BATCH_SECONDS, GROUP, SIDE, ACTIONS = 26, 0.95, 4, 48, 6


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(),
            nn.Linear(16 * 7 * 7, ACTIONS),
        )

    def forward(self, screens):
        return self.layers(screens)


class Maze:
    """A light that moves with the actions, over a floor that is drawn anew for each problem."""

    def __init__(self, problem):
        self.rng = np.random.default_rng(problem)
        self.floor = self.rng.random((SIDE, SIDE), np.float32) * 0.3
        self.place, self.goal = self.rng.integers(4, SIDE - 4, 2), self.rng.integers(4, SIDE - 4, 2)

    def screen(self):
        screen = self.floor.copy()
        screen[self.goal[0] - 2 : self.goal[0] + 2, self.goal[1] - 2 : self.goal[1] + 2] += 0.5
        screen[self.place[0] - 1 : self.place[0] + 1, self.place[1] - 1 : self.place[1] + 1] = 1
        return screen

    def step(self, action):
        move = [(0, 1), (0, -1), (1, 0), (-1, 0), (0, 0), (1, 1)][action]
        before = np.abs(self.place - self.goal).sum()
        self.place = np.clip(self.place + move, 4, SIDE - 5)
        return float(before - np.abs(self.place - self.goal).sum())


@torch.no_grad()
def rollout(policy, problem):
    """The trajectories of one problem; some problems take four times as long as others."""
    length = int(np.random.default_rng(problem).choice([30, 50, 120]))
    mazes = [Maze(problem) for _ in range(GROUP)]
    screens = np.empty((length, GROUP, 1, SIDE, SIDE), np.float32)
    actions, rewards = np.empty((length, GROUP), np.int64), np.empty((length, GROUP), np.float32)
    for step in range(length):
        for number, maze in enumerate(mazes):
            screens[step, number, 0] = maze.screen()
        chosen = torch.multinomial(policy(torch.from_numpy(screens[step])).softmax(-1), 1)[:, 0].numpy()
        actions[step] = chosen
        rewards[step] = [maze.step(int(action)) for maze, action in zip(mazes, chosen)]
    return screens, actions, rewards.sum(0)


def sample(policy, admission, finished):
    while (number := admission.start()) is not None:
        finished.put(number, rollout(policy, number))


def learn(policy, optimizer, groups, end):
    """Goes over the batch's groups until it is time for the next batch."""
    while True:
        for screens, actions, returns in groups:
            advantages = torch.from_numpy(returns - returns.mean())
            steps = np.random.randint(len(screens), size=16)
            logits = policy(torch.from_numpy(screens[steps]).flatten(0, 1)).view(16, GROUP, ACTIONS)
            chosen = torch.from_numpy(actions[steps])
            logprobs = logits.log_softmax(-1).gather(-1, chosen[..., None])[..., 0]
            loss = -(logprobs * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > end:
                return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = AsyncConfig(groups_per_batch=8, max_steps_off_policy=10)
    admission, finished = Admission(config), FinishedGroups()
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    samplers = [threading.Thread(target=sample, args=(policy, admission, finished)) for _ in range(2)]
    for sampler in samplers:
        sampler.start()
    for batch in range(BATCHES):
        groups = finished.take(config.groups_per_batch)
        loss = learn(policy, optimizer, groups, time.monotonic() + BATCH_SECONDS)
        mean = np.mean([returns.mean() for _, _, returns in groups])
        print(f"batch {batch}: return {mean:.2f} loss {loss:.4f}, {len(finished.groups)} groups wait", flush=True)
        del groups
        admission.finish_batch()
    admission.close()
    for sampler in samplers:
        sampler.join()


if __name__ == "__main__":
    main()
