"""Keep a car in its lane: policy gradient on camera and lidar, one episode after the other"""

import time

import torch
from torch import nn

from env import LaneEnv

torch.set_num_threads(1)
EPISODES, EPISODE_S = 400, 0.3


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.eyes = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=3), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(nn.LazyLinear(64), nn.Tanh(), nn.Linear(64, 3))

    def forward(self, images, ranges):
        return torch.distributions.Categorical(logits=self.head(torch.cat([self.eyes(images), ranges], dim=1)))


def run_episode(env, policy):
    image, ranges = env.reset()
    end, images, scans, actions, rewards = time.monotonic() + EPISODE_S, [], [], [], []
    while time.monotonic() < end or len(rewards) < 8:
        images.append(torch.from_numpy(image))
        scans.append(torch.from_numpy(ranges.copy()))
        with torch.no_grad():
            action = policy(images[-1][None], scans[-1][None]).sample()
        actions.append(action)
        (image, ranges), reward = env.step(float(action) - 1.0)
        rewards.append(reward)
    return torch.stack(images), torch.stack(scans), torch.cat(actions), rewards


def main():
    torch.manual_seed(0)
    env, policy = LaneEnv(), Policy()
    policy(torch.zeros(1, 3, 64, 64), torch.zeros(1, 256))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for episode in range(EPISODES):
        images, scans, actions, rewards = run_episode(env, policy)
        returns, running = [], 0.0
        for reward in reversed(rewards):
            running = reward + 0.97 * running
            returns.append(running)
        returns = torch.tensor(returns[::-1])
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        for start in range(0, len(actions), 64):
            part = slice(start, start + 64)
            loss = -(policy(images[part], scans[part]).log_prob(actions[part]) * returns[part]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if episode % 10 == 0:
            print(f"episode {episode}: {len(rewards)} steps, reward {sum(rewards):.1f}", flush=True)
    env.close()


if __name__ == "__main__":
    main()
