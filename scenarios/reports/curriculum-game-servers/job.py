"""Trains a squad of five units on a curriculum of maps"""

import time

import torch
from environment import FEATURES, MOVES, EnvCurriculum, SquadEnv
from torch import nn

torch.set_num_threads(1)
SECONDS, STEP_S, EPISODES, DISCOUNT = 26.0, 0.018, 2, 0.97
SIDES = (1500, 1600, 1700)


class Squad(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.policy, self.value = nn.Linear(width, MOVES), nn.Linear(width, 1)

    def forward(self, views):
        hidden = self.body(views)
        mixed, _ = self.mix(hidden, hidden, hidden, need_weights=False)
        hidden = hidden + mixed
        return self.policy(hidden), self.value(hidden).mean((1, 2))


def episode(env, model):
    """One match: what was seen, done and gained"""
    views, moves, rewards = [], [], []
    view, done = torch.from_numpy(env.reset()), False
    until = time.monotonic()
    while not done:
        until += STEP_S
        with torch.no_grad():
            logits, _ = model(view[None])
            chosen = torch.distributions.Categorical(logits=logits[0]).sample()
            # Looks ahead for as long as the frame lasts
            while time.monotonic() < until:
                model(view + 0.1 * torch.randn(16, *view.shape))
        views.append(view)
        moves.append(chosen)
        seen, reward, done = env.step(chosen.tolist())
        view = torch.from_numpy(seen)
        rewards.append(reward)
    return torch.stack(views), torch.stack(moves), rewards


def update(model, optimizer, views, moves, rewards):
    returns, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + DISCOUNT * later
        returns.append(later)
    returns = torch.tensor(returns[::-1])
    logits, values = model(views)
    chances = torch.distributions.Categorical(logits=logits)
    gain = (returns - values).detach()
    loss = -(chances.log_prob(moves).sum(1) * gain).mean() + (returns - values).square().mean()
    optimizer.zero_grad()
    (loss - 0.01 * chances.entropy().mean()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = Squad()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    env = EnvCurriculum([lambda seed, side=side: SquadEnv(side, seed) for side in SIDES], EPISODES)
    begin, played = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        views, moves, rewards = episode(env, model)
        loss = update(model, optimizer, views, moves, rewards)
        played += 1
        if played % 5 == 0:
            print(f"{played} episodes, map {env.stage}, loss {loss:.3f}, gained {sum(rewards):.2f}", flush=True)
    env.close()


if __name__ == "__main__":
    main()
