"""Explores a tree of tasks with an agent over environments in processes."""

import multiprocessing
import time

import numpy as np
import torch

ENVS = 2
TASKS = ["log", "planks", "stick", "table", "pickaxe", "cobblestone", "furnace", "iron_ingot", "bucket"]
SECONDS_A_TASK = 3.0


class World:
    """Rewards are by name, and one of the names is spelt otherwise in the simulator."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.inventory = dict.fromkeys([name for name in TASKS if name != "iron_ingot"] + ["iron"], 0)

    def reset(self, task):
        self.task, self.before = task, self.inventory[task]
        self.view = self.random.random((3, 48, 48), np.float32)
        return self.view

    def step(self, action):
        for _ in range(3):
            self.view = np.clip(self.view + 0.01 * self.random.standard_normal(self.view.shape, np.float32), 0, 1)
        self.inventory[self.task] += int(action == 0)
        return self.view, self.inventory[self.task] - self.before


def worker(remote, ours, seed):
    ours.close()
    world = World(seed)
    while True:
        command, data = remote.recv()
        if command == "reset":
            remote.send(world.reset(data))
        elif command == "step":
            remote.send(world.step(data))
        else:
            remote.close()
            return


class SubprocVecEnv:
    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.remotes = []
        for seed in range(ENVS):
            ours, theirs = context.Pipe()
            context.Process(target=worker, args=(theirs, ours, seed), daemon=True).start()
            theirs.close()
            self.remotes.append(ours)

    def call(self, command, arguments):
        for remote, argument in zip(self.remotes, arguments, strict=True):
            remote.send((command, argument))
        return [remote.recv() for remote in self.remotes]


def main():
    torch.set_num_threads(1)
    envs = SubprocVecEnv()
    policy = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(6)
    )
    optimizer = None
    for task in TASKS:
        views = np.stack(envs.call("reset", [task] * ENVS))
        start, steps, gained = time.monotonic(), 0, 0
        while time.monotonic() - start < SECONDS_A_TASK:
            chosen = torch.distributions.Categorical(logits=policy(torch.from_numpy(views)))
            optimizer = optimizer or torch.optim.Adam(policy.parameters())
            action = chosen.sample()
            answers = envs.call("step", action.tolist())
            views = np.stack([view for view, _ in answers])
            gained = max(reward for _, reward in answers)
            loss = -(chosen.log_prob(action) * torch.tensor([float(reward > 0) for _, reward in answers])).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"{task}: {steps} steps, {gained} gained", flush=True)
    envs.call("close", [None] * ENVS)


if __name__ == "__main__":
    main()
