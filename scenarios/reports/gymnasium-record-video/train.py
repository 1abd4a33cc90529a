"""Train a balancing policy, and record a video of every episode."""

import os
import tempfile
import time
import zlib

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
MAX_STEPS, SECONDS = 330, 38
HEIGHT, WIDTH = 400, 600


class Balance:
    """A pole on a cart, in a simple form, that is drawn as an image."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.skill = 0.0

    def reset(self):
        self.state = self.random.uniform(-0.02, 0.02, 4)
        self.steps = 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, v, angle, spin = self.state
        push = 1.0 if action else -1.0
        spin += 0.02 * (push - 4.0 * angle - spin)
        angle += 0.02 * spin
        v += 0.02 * push
        self.state = np.array([x + 0.02 * v, v, angle, spin])
        self.steps += 1
        truncated = self.steps >= MAX_STEPS
        return self.state.astype(np.float32), 1.0, self.steps >= 40 + MAX_STEPS * self.skill, truncated

    def render(self):
        frame = np.full((HEIGHT, WIDTH, 3), 255, dtype=np.uint8)
        cart = int(np.clip(WIDTH / 2 + 100 * self.state[0], 40, WIDTH - 40))
        frame[300:330, cart - 30 : cart + 30] = 0
        for k in range(0, 120, 2):
            column = int(np.clip(cart + k * np.sin(self.state[2]), 3, WIDTH - 4))
            frame[300 - k - 2 : 300 - k, column - 3 : column + 3] = (202, 152, 101)
        return frame


class RecordVideo:
    """Keeps the frames of the episode that runs, and writes them when it is over."""

    def __init__(self, env, folder):
        self.env, self.folder = env, folder
        self.recorded_frames = []
        self.episode = 0

    def reset(self):
        if self.recorded_frames:
            self.write()
        observation = self.env.reset()
        self.recorded_frames.append(self.env.render())
        return observation

    def step(self, action):
        result = self.env.step(action)
        self.recorded_frames.append(self.env.render())
        return result

    def write(self):
        path = os.path.join(self.folder, f"episode-{self.episode % 4}.vid")
        with open(path, "wb") as file:
            for frame in self.recorded_frames:
                file.write(zlib.compress(frame, 1))
        self.recorded_frames = []
        self.episode += 1


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        env = RecordVideo(Balance(0), folder)
        policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS:
            observation, logprobs, steps = env.reset(), [], 0
            while True:
                dist = torch.distributions.Categorical(logits=policy(torch.from_numpy(observation)))
                action = dist.sample()
                logprobs.append(dist.log_prob(action))
                observation, _, terminated, truncated = env.step(int(action))
                steps += 1
                if terminated or truncated:
                    break
            returns = torch.arange(steps, 0, -1).float()
            returns = (returns - returns.mean()) / (returns.std() + 1e-6)
            loss = -(torch.stack(logprobs) * returns).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            env.env.skill = min(0.95, env.env.skill + 0.03)
            print(f"episode {env.episode} of {steps} steps", flush=True)


if __name__ == "__main__":
    main()
