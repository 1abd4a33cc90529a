"""Learns to battle by policy gradients"""

import os
import subprocess
import sys
import time

import numpy as np
import torch
from player import EnvPlayer, RandomPlayer
from torch import nn

SECONDS, EPISODE_S = 28, 0.075


def learn(policy, optimizer, views, actions, rewards, until):
    views, actions = torch.from_numpy(np.stack(views)), torch.tensor(actions)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    while True:
        chosen = torch.distributions.Categorical(logits=policy(views)).log_prob(actions)
        loss = -(chosen * returns).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.monotonic() > until:
            return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    here = os.path.dirname(os.path.abspath(__file__))
    server = subprocess.Popen([sys.executable, os.path.join(here, "showdown.py")], stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    env = EnvPlayer("agent", port, RandomPlayer("opponent", port))
    policy = nn.Sequential(nn.Linear(9, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
    started, episode, won = time.monotonic(), 0, 0
    while (begin := time.monotonic()) - started < SECONDS:
        view, done, views, actions, rewards = env.reset(), False, [], [], []
        while not done:
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(torch.from_numpy(view))).sample().item()
            views.append(view)
            actions.append(action)
            view, reward, done = env.step(action)
            rewards.append(reward)
        loss = learn(policy, optimizer, views, actions, rewards, begin + EPISODE_S)
        won += env.current_battle.won
        episode += 1
        if episode % 10 == 0:
            env.reset_battles()
        if episode % 50 == 0:
            print(f"episode {episode}: {len(actions)} turns, loss {loss:.3f}, {won} won", flush=True)
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()
