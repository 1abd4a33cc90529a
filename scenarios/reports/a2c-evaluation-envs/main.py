"""Advantage actor critic with an evaluation every few updates"""

import argparse
import time

import torch
from torch import nn
from vec_env import SubprocVecEnv

torch.set_num_threads(1)


class Policy(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.base = nn.Sequential(
            nn.Conv2d(1, 16, 6, stride=3), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.Flatten(),
            nn.LazyLinear(128), nn.ReLU(),
        )
        self.actor, self.critic = nn.Linear(128, actions), nn.Linear(128, 1)

    def forward(self, obs):
        hidden = self.base(torch.from_numpy(obs).unsqueeze(1))
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(1)


def evaluate(policy, seed, steps):
    envs = SubprocVecEnv([seed, seed + 1])
    obs, total = envs.reset(), 0.0
    with torch.no_grad():
        for _ in range(steps):
            distribution, _ = policy(obs)
            obs, rewards, _ = envs.step(distribution.probs.argmax(1).tolist())
            total += float(rewards.sum())
    return total / 2


def update(policy, optimizer, envs, obs, steps=5, gamma=0.99):
    losses, values, log_probs, entropies, rewards = [], [], [], [], []
    for _ in range(steps):
        distribution, value = policy(obs)
        action = distribution.sample()
        obs, reward, _ = envs.step(action.tolist())
        values.append(value)
        log_probs.append(distribution.log_prob(action))
        entropies.append(distribution.entropy())
        rewards.append(torch.from_numpy(reward))
    with torch.no_grad():
        running = policy(obs)[1]
    for value, log_prob, entropy, reward in reversed(list(zip(values, log_probs, entropies, rewards))):
        running = reward + gamma * running
        advantage = running - value
        losses.append((advantage.pow(2) * 0.5 - advantage.detach() * log_prob - 0.01 * entropy).mean())
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    return obs, loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=27)
    parser.add_argument("--eval-interval", type=float, default=1.2)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    policy, envs = Policy(), SubprocVecEnv([1, 2])
    obs = envs.reset()
    policy(obs)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=7e-4)
    started = evaluated = time.monotonic()
    updates = evaluations = 0
    while time.monotonic() - started < arguments.seconds:
        obs, loss = update(policy, optimizer, envs, obs)
        updates += 1
        if time.monotonic() - evaluated > arguments.eval_interval:
            evaluations += 1
            reward = evaluate(policy, 1000 + 10 * evaluations, 30)
            print(f"update {updates}: loss {loss:.4f}, evaluation {evaluations}: reward {reward:.1f}", flush=True)
            evaluated = time.monotonic()
    envs.close()


if __name__ == "__main__":
    main()
