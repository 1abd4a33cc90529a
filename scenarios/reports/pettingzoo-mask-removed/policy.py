"""What a hunter does, and how good it thinks its place is"""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten()
        )
        self.actor, self.critic = nn.Linear(144, 5), nn.Linear(144, 1)

    def forward(self, observations, masks):
        hidden = self.body(observations)
        return self.actor(hidden).masked_fill(~masks, -1e9), self.critic(hidden)[:, 0]

    @torch.no_grad()
    def act(self, observations, masks):
        return torch.distributions.Categorical(logits=self(observations, masks)[0]).sample()
