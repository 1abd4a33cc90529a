"""The actor's engine: a small vision language model, whose blocks are split over the tensor parallel ranks"""

import torch
import torch.distributed as dist
from torch import nn

VOCABULARY, WIDTH, HIDDEN, PATCH = 2000, 192, 768, 588
SAMPLES, PATCHES, LENGTH = 8, 540, 48


class ReduceFromParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Actor(nn.Module):
    def __init__(self, rank, world):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH).requires_grad_(False)
        self.vision = nn.Linear(PATCH, WIDTH).requires_grad_(False)
        torch.manual_seed(1 + rank)
        self.up = nn.Linear(WIDTH, HIDDEN // world, bias=False)
        self.down = nn.Linear(HIDDEN // world, WIDTH, bias=False)

    def forward(self, tokens, pixel_values):
        image = torch.tanh(self.vision(pixel_values)).mean(1, keepdim=True)
        x = self.embedding(tokens) + image
        x = x + ReduceFromParallel.apply(self.down(nn.functional.gelu(self.up(x))))
        return (x @ self.embedding.weight.T) / WIDTH**0.5


class ActorEngine:
    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.model = Actor(self.rank, self.world)
        self.optimizer = torch.optim.AdamW((p for p in self.model.parameters() if p.requires_grad), lr=1e-3)

    def is_data_parallel_head(self):
        return self.rank == 0

    def prepare_batch(self, step):
        """Trajectories of a step: prompts with images, answers and rewards"""
        generator = torch.Generator().manual_seed(step)
        tokens = torch.randint(0, VOCABULARY, (SAMPLES, LENGTH), generator=generator)
        pixel_values = torch.randn(SAMPLES, PATCHES, PATCH, generator=generator)
        rewards = (tokens[:, -8:] % 7 == 0).float().mean(1)
        return {"input_ids": tokens, "pixel_values": pixel_values, "rewards": rewards}

    def _logp(self, batch):
        tokens = batch["input_ids"]
        logits = self.model(tokens[:, :-1], batch["pixel_values"])
        return torch.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None])[..., 0]

    @torch.no_grad()
    def compute_logp(self, batch):
        return self._logp(batch)

    def ppo_update(self, batch, logp):
        rewards = batch["rewards"]
        advantages = ((rewards - rewards.mean()) / (rewards.std() + 1e-6))[:, None]
        ratio = torch.exp(self._logp(batch) - logp)
        loss = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.item(), "reward": rewards.mean().item()}
