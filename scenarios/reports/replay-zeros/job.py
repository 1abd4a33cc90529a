"""DQN with a replay buffer whose arrays are allocated at their full size before the first step."""

import threading

import numpy as np
import torch

BUFFER_SIZE = 4500
STEPS = 7_000
OBS_SHAPE = (4, 84, 84)


class ReplayBuffer:
    def __init__(self, buffer_size, obs_shape):
        self.buffer_size = buffer_size
        self.observations = np.zeros((buffer_size, 1, *obs_shape), np.uint8)
        self.next_observations = np.zeros((buffer_size, 1, *obs_shape), np.uint8)
        self.actions = np.zeros((buffer_size, 1), np.int64)
        self.rewards = np.zeros((buffer_size, 1), np.float32)
        self.pos = 0
        self.full = False

    def add(self, obs, next_obs, action, reward):
        self.observations[self.pos] = obs
        self.next_observations[self.pos] = next_obs
        self.actions[self.pos] = action
        self.rewards[self.pos] = reward
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full, self.pos = True, 0

    def sample(self, batch_size, rng):
        picks = rng.integers(0, self.buffer_size if self.full else self.pos, batch_size)
        parts = self.observations[picks, 0], self.next_observations[picks, 0], self.actions[picks], self.rewards[picks]
        return [torch.as_tensor(part) for part in parts]


class Pong:
    def __init__(self, rng):
        self.rng = rng
        self.frames = np.zeros(OBS_SHAPE, np.uint8)
        self.frame = threading.Event()

    def step(self, action):
        self.frame.wait(0.001)  # the emulator draws it
        self.frames = np.roll(self.frames, 1, 0)
        self.frames[0] = 40
        row, column = self.rng.integers(0, 80, 2)
        self.frames[0, row : row + 4, column : column + 4] = 236
        return self.frames.copy(), float(action == column % 6)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    layers = [torch.nn.Conv2d(4, 8, 8, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 4, 2), torch.nn.ReLU()]
    q_net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(1296, 6))
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-4)
    buffer, env = ReplayBuffer(BUFFER_SIZE, OBS_SHAPE), Pong(rng)
    obs, _ = env.step(0)
    for step in range(STEPS):
        action = int(rng.integers(6))
        next_obs, reward = env.step(action)
        buffer.add(obs, next_obs, action, reward)
        obs = next_obs
        if step > 500 and step % 12 == 0:
            batch, next_batch, actions, rewards = buffer.sample(16, rng)
            with torch.no_grad():
                target = rewards[:, 0] + 0.99 * q_net(next_batch.float() / 255).amax(1)
            chosen = q_net(batch.float() / 255).gather(1, actions)[:, 0]
            loss = torch.nn.functional.smooth_l1_loss(chosen, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 1000 == 999:
            print(f"step {step}: loss {loss.item():.4f}, buffer {'full' if buffer.full else buffer.pos}", flush=True)


if __name__ == "__main__":
    main()
