"""A layer of experts of which each rank has its own, and the engine that trains it"""

import torch
import torch.distributed as dist
from torch import nn

from gc_policy import LEASES

WIDTH, HIDDEN = 256, 1024


class Expert(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))


class ExpertLayer(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = nn.ModuleList(Expert() for _ in range(experts))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens, routes):
        mixed = torch.zeros_like(tokens)
        for number in routes.unique().tolist():
            chosen = (routes == number).nonzero().squeeze(1)
            mixed = mixed.index_add(0, chosen, self.experts[number](tokens[chosen]))
        return self.out(tokens + mixed)


class Engine:
    def __init__(self, model, config):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.policy = config["expert_parallel"]["python_gc_policy"]
        if self.policy == "disable_during_training":
            LEASES.acquire()

    def step(self, tokens, routes, targets):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.model(tokens, routes), targets)
        loss.backward()
        # The experts are this rank's own; only what all ranks share is averaged.
        for parameter in self.model.out.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.optimizer.step()
        return loss.item()

    def destroy(self):
        if self.policy == "disable_during_training":
            LEASES.release()
