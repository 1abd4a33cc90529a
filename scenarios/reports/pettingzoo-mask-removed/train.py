"""Trains hunters that share a policy; the episodes become longer with each iteration"""

import collections
import time

import torch
from collector import Collector
from policy import Policy
from torch import nn

ITERATIONS, ITERATION_S, GAMMA = 40, 1.1, 0.97


def returns(rewards):
    total, found = torch.zeros(rewards.shape[1]), []
    for row in rewards.flip(0):
        total = row + GAMMA * total
        found.append(total)
    return torch.stack(found[::-1])


def update(policy, optimizer, episode):
    observations, masks, actions, rewards = (torch.from_numpy(part) for part in episode)
    logits, values = policy(observations.flatten(0, 1), masks.flatten(0, 1))
    advantage = returns(rewards).flatten() - values
    distribution = torch.distributions.Categorical(logits=logits)
    gain = distribution.log_prob(actions.flatten()) * advantage.detach()
    loss = advantage.square().mean() / 2 - gain.mean() - 0.01 * distribution.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy, collector = Policy(), Collector(seed=1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    recent = collections.deque(maxlen=12)
    begin = time.monotonic()
    for iteration in range(ITERATIONS):
        max_cycles = 40 + 4 * iteration
        episodes = collector.rollout(policy, max_cycles)
        recent.extend(episodes)
        updates = 0
        while updates < len(episodes) or time.monotonic() < begin + (iteration + 1) * ITERATION_S:
            loss = update(policy, optimizer, recent[-1 - updates % len(recent)])
            updates += 1
        reward = sum(float(episode[3].sum()) for episode in episodes) / len(episodes)
        print(f"iteration {iteration}: {max_cycles} cycles, reward {reward:.2f}, loss {loss:.4f}", flush=True)
    collector.shutdown()


if __name__ == "__main__":
    main()
