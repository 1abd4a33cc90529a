"""Trains a policy that flies quadrotors to their targets, through the simulation"""

import time

import torch
from torch import nn

from dynamics import HoverEnv

torch.set_num_threads(1)
DRONES, HORIZON, STAGE_S, UPDATES_S = 256, 32, 6.0, 40.0
# How far the drones may fly from the middle, in metres, from stage to stage.
STAGES = (1000.0, 500.0, 200.0, 1.2)


def main():
    torch.manual_seed(0)
    env = HoverEnv(DRONES, STAGES)
    policy = nn.Sequential(nn.Linear(9, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU(), nn.Linear(128, 3), nn.Tanh())
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    begin, update = time.monotonic(), 0
    while time.monotonic() - begin < UPDATES_S:
        env.stage = int((time.monotonic() - begin) // STAGE_S)
        if update % 8 == 0:
            env.dynamics.reset()
        env.dynamics.detach()
        state, total = env.observe(), 0.0
        for _ in range(HORIZON):
            state, reward, _ = env.step(policy(state))
            total = total + reward.mean()
        actor_loss = -total / HORIZON
        optimizer.zero_grad()
        actor_loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        update += 1
        if update % 20 == 0:
            print(f"update {update}: stage {env.stage}, loss {actor_loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
