"""Fully sharded layers: each rank stores its part of every weight, and gathers the whole for the time it is used"""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def gather(shard):
    whole = torch.empty(dist.get_world_size() * len(shard))
    dist.all_gather(list(whole.chunk(dist.get_world_size())), shard)
    return whole


class Whole(torch.autograd.Function):
    """A whole weight from the shards of all ranks; its gradient is averaged, and cut into shards again"""

    @staticmethod
    def forward(ctx, shard, rows, columns):
        return gather(shard.detach()).view(rows, columns)

    @staticmethod
    def backward(ctx, gradient):
        flat = gradient.flatten()
        dist.all_reduce(flat)
        return flat.chunk(dist.get_world_size())[dist.get_rank()] / dist.get_world_size(), None, None


class ShardedLinear(nn.Module):
    def __init__(self, inputs, outputs, rate):
        super().__init__()
        self.rows, self.columns, self.rate = outputs, inputs, rate
        size = inputs * outputs // dist.get_world_size()
        self.shard = nn.Parameter(torch.empty(size).normal_(0, 1 / math.sqrt(inputs)))
        self.shard.register_post_accumulate_grad_hook(self.update)

    @torch.no_grad()
    def update(self, shard):
        shard.add_(shard.grad, alpha=-self.rate)
        shard.grad = None

    def _apply_whole(self, x):
        return functional.linear(x, Whole.apply(self.shard, self.rows, self.columns))

    def forward(self, x):
        # The whole weight is not stored for the way back, but gathered again
        return checkpoint(self._apply_whole, x, use_reentrant=False)


class FullyShardedModel(nn.Module):
    def __init__(self, width, layers, rate=0.02):
        super().__init__()
        self.layers = nn.ModuleList(ShardedLinear(width, width, rate) for _ in range(layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)

    def forward(self, x):
        for layer in self.layers:
            x = x + functional.gelu(layer(self.norm(x)))
        return x

    @torch.no_grad()
    def full_state_dict(self):
        """The state of the unsharded model; all ranks take part"""
        return {
            f"layers.{number}.weight": gather(layer.shard).view(layer.rows, layer.columns)
            for number, layer in enumerate(self.layers)
        }
