"""Soft actor-critic from pixels with a contrastive loss, on a pole that swings up"""

import math
import time

import numpy as np
import torch
from torch import nn

from utils import FrameStack, ReplayBuffer

torch.set_num_threads(1)
SECONDS, SLICE_S, STEPS_PER_SLICE = 37.0, 0.1, 18
CAPACITY, BATCH, PRE, IMAGE, STACK, EPISODE = 2300, 8, 84, 76, 3, 250


class Cartpole:
    """A pole on a cart, as a picture."""

    def reset(self):
        self.angle, self.speed, self.x, self.time = math.pi, 0.0, 0.0, 0
        return self._render()

    def _render(self):
        frame = np.zeros((3, PRE, PRE), dtype=np.uint8)
        cart = int((self.x + 1) / 2 * (PRE - 12))
        frame[2, 60:66, cart : cart + 12] = 255
        for part in np.linspace(0, 34, 35):
            row, column = int(60 - part * math.cos(self.angle)), int(cart + 6 + part * math.sin(self.angle))
            if 0 <= row < PRE and 0 <= column < PRE:
                frame[0, row, column] = 255
        return frame

    def step(self, action):
        self.speed = 0.99 * self.speed + 0.1 * math.sin(self.angle) + 0.2 * float(action[0])
        self.angle += 0.05 * self.speed
        self.x = max(-1.0, min(1.0, self.x + 0.03 * float(action[0])))
        self.time += 1
        return self._render(), math.cos(self.angle), self.time >= EPISODE


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(3 * STACK, 16, 3, 4), nn.ReLU(), nn.Conv2d(16, 16, 3, 2), nn.ReLU())
        self.out = nn.Sequential(nn.Flatten(), nn.LazyLinear(50), nn.LayerNorm(50), nn.Tanh())

    def forward(self, images):
        return self.out(self.convolutions(images))


class Agent:
    def __init__(self):
        self.encoder = Encoder()
        self.encoder(torch.zeros(1, 3 * STACK, IMAGE, IMAGE))
        self.actor, self.critic = nn.Linear(50, 1), nn.Linear(51, 1)
        self.mix = nn.Parameter(torch.eye(50))
        parts = [*self.encoder.parameters(), *self.actor.parameters(), *self.critic.parameters(), self.mix]
        self.optimizer = torch.optim.Adam(parts, lr=1e-3)

    @torch.no_grad()
    def sample_action(self, obs):
        side = (PRE - IMAGE) // 2
        image = torch.from_numpy(obs[None, :, side : side + IMAGE, side : side + IMAGE]).float() / 255
        return (torch.tanh(self.actor(self.encoder(image)))[0] + 0.3 * torch.randn(1)).clamp(-1, 1).numpy()

    def update(self, buffer):
        anchor, positive, following, action, reward, not_done = buffer.sample_cpc()
        z, z_positive = self.encoder(anchor), self.encoder(positive)
        with torch.no_grad():
            z_next = self.encoder(following)
            target = reward + 0.99 * not_done * self.critic(torch.cat([z_next, torch.tanh(self.actor(z_next))], 1))
        critic = nn.functional.mse_loss(self.critic(torch.cat([z, action], 1)), target)
        actor = -self.critic(torch.cat([z.detach(), torch.tanh(self.actor(z.detach()))], 1)).mean()
        contrast = nn.functional.cross_entropy(z @ self.mix @ z_positive.T, torch.arange(len(z)))
        self.optimizer.zero_grad()
        (critic + 0.1 * actor + contrast).backward()
        self.optimizer.step()
        return contrast.item()


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    env, agent = FrameStack(Cartpole(), STACK), Agent()
    buffer = ReplayBuffer((3 * STACK, PRE, PRE), (1,), CAPACITY, BATCH, IMAGE)
    obs, begin, step, total, loss = env.reset(), time.monotonic(), 0, 0.0, 0.0
    until = begin
    while time.monotonic() - begin < SECONDS:
        until = max(until + SLICE_S, time.monotonic())
        for _ in range(STEPS_PER_SLICE):
            action = agent.sample_action(obs)
            next_obs, reward, done = env.step(action)
            buffer.add(obs, action, reward, next_obs, done)
            total, obs, step = total + reward, next_obs, step + 1
            if done:
                print(f"step {step}: return {total:.1f}, contrast {loss:.3f}", flush=True)
                obs, total = env.reset(), 0.0
        while time.monotonic() < until:
            loss = agent.update(buffer)


if __name__ == "__main__":
    main()
