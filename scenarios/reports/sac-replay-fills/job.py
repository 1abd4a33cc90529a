"""Discrete SAC with actors in processes: LazyMemory keeps stacks of frames up to its capacity, then drops the oldest."""

from collections import deque

import numpy as np
import torch
import torch.multiprocessing as mp

CAPACITY, STEPS, ACTORS = 9000, 20_000, 2


class LazyFrames:
    def __init__(self, frames):
        self._frames = list(frames)

    def __array__(self, dtype=None, copy=None):
        return np.stack(self._frames)


class LazyMemory(dict):
    state_keys = ["state", "next_state"]
    keys_ = ["action", "reward", "done"]

    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity
        for key in self.state_keys + self.keys_:
            self[key] = []

    def append(self, state, action, reward, next_state, done):
        for key, value in zip(["state", "action", "reward", "next_state", "done"], (state, action, reward, next_state, done)):
            self[key].append(value)
        while len(self["state"]) > self.capacity:
            for key in self.state_keys + self.keys_:
                self[key].pop(0)

    def sample(self, batch_size):
        indices = np.random.randint(len(self["state"]), size=batch_size)
        states = np.stack([np.asarray(self["state"][i]) for i in indices])
        actions = np.array([self["action"][i] for i in indices])
        return torch.from_numpy(states).float() / 255, torch.from_numpy(actions)


def actor(seed, remote):
    """Plays one game after the other; sends a new frame for each action that it receives."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(0, 80, (160, 160), np.uint8)
    x = 40
    while True:
        action = remote.recv()
        if action is None:
            return
        x = int(np.clip(x + action - 1, 2, 76))
        frame = np.roll(ground, int(rng.integers(4)), 1)
        frame[60:100, x : x + 6] = 255
        remote.send((frame, float(x > 60), bool(rng.random() < 0.004)))


def main():
    torch.set_num_threads(1)
    remotes, actors = [], []
    for seed in range(ACTORS):
        ours, theirs = mp.Pipe()
        process = mp.Process(target=actor, args=(seed, theirs), daemon=True)
        process.start()
        remotes.append(ours)
        actors.append(process)
    policy = torch.nn.Sequential(
        torch.nn.Conv2d(4, 16, 8, stride=8), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 4, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(16 * 9 * 9, 3),
    )
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
    memory = LazyMemory(CAPACITY)
    stacks = [deque([np.zeros((160, 160), np.uint8)] * 4, maxlen=4) for _ in remotes]
    for step in range(STEPS // ACTORS):
        actions = np.random.randint(3, size=ACTORS)
        for remote, action in zip(remotes, actions):
            remote.send(int(action))
        for n, remote in enumerate(remotes):
            frame, reward, done = remote.recv()
            state = LazyFrames(stacks[n])
            stacks[n].append(frame)
            memory.append(state, int(actions[n]), reward, LazyFrames(stacks[n]), done)
        if step % 8 == 0:
            states, chosen = memory.sample(16)
            loss = torch.nn.functional.cross_entropy(policy(states), chosen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 800 == 0:
                print(f"step {step} memory {len(memory['state'])} loss {loss.item():.3f}", flush=True)
    for remote, process in zip(remotes, actors):
        remote.send(None)
        process.join()


if __name__ == "__main__":
    main()
