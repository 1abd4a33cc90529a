"""A discrete SAC agent: the replay memory rises until it has its capacity, and the oldest frames leave from then on."""

import numpy as np
import torch

MEMORY_SIZE = 30_000
NUM_STEPS = 62_000
START_STEPS = 2_000
FRAME = (84, 128)


class LazyFrames:
    """Stacked frames share their arrays with the frames before them."""

    def __init__(self, frames):
        self._frames = frames

    def __array__(self, dtype=None, copy=None):
        return np.array(self._frames, dtype=dtype)


class LazyMemory(dict):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity
        for key in ("state", "next_state", "action", "reward", "done"):
            self[key] = []

    def __len__(self):
        return len(self["state"])

    def append(self, state, action, reward, next_state, done):
        self["state"].append(state)
        self["next_state"].append(next_state)
        self["action"].append(action)
        self["reward"].append(reward)
        self["done"].append(done)
        while len(self) > self.capacity:
            for key in self:
                self[key].pop(0)

    def sample(self, batch_size):
        indices = np.random.randint(0, len(self), batch_size)
        states = np.stack([np.array(self["state"][n]) for n in indices])
        rewards = np.array([self["reward"][n] for n in indices], np.float32)
        return torch.from_numpy(states).float() / 255, torch.from_numpy(rewards)


class Env:
    """Frames as noisy as an emulator's: 11 KiB each."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.stack = [self.frame() for _ in range(4)]

    def frame(self):
        return np.frombuffer(self.rng.bytes(FRAME[0] * FRAME[1]), np.uint8).reshape(FRAME)

    def step(self, action):
        self.stack = [*self.stack[1:], self.frame()]
        return LazyFrames(self.stack), float(action == 0), self.rng.random() < 0.002


def main():
    torch.set_num_threads(1)
    q_net = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 8, stride=4), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 4, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.LazyLinear(6),
    )  # fmt: skip
    q_net(torch.zeros(1, 4, *FRAME))
    optimizer = torch.optim.Adam(q_net.parameters(), lr=3e-4)
    env, memory = Env(0), LazyMemory(MEMORY_SIZE)
    state = LazyFrames(env.stack)
    for step in range(NUM_STEPS):
        action = step % 6
        next_state, reward, done = env.step(action)
        memory.append(state, action, reward, next_state, done)
        state = next_state
        if step > START_STEPS and step % 64 == 0:
            states, rewards = memory.sample(32)
            loss = (q_net(states).max(1).values - rewards).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 5_000 == 0:
            print("step", step, "memory", len(memory), flush=True)


if __name__ == "__main__":
    main()
