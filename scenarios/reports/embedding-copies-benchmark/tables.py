"""Quantized embedding tables with bags: two values of four bits in a byte, and a scale and a bias for each row"""

import torch
from torch import nn


class QuantizedTables(nn.Module):
    def __init__(self, rows, dim, tables, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.dim = dim
        self.packed = [
            torch.randint(0, 256, (rows, dim // 2), dtype=torch.uint8, generator=generator) for _ in range(tables)
        ]
        self.scales = [torch.rand(rows, 2, generator=generator) / 16 for _ in range(tables)]

    @torch.inference_mode()
    def forward(self, indices, offsets):
        """The sum of each bag in each table; `indices` holds the bags of all tables, one table after another"""
        outputs = []
        for packed, scales, wanted in zip(self.packed, self.scales, indices.chunk(len(self.packed))):
            low, high = packed[wanted] & 15, packed[wanted] >> 4
            rows = torch.stack([low, high], 2).view(len(wanted), self.dim).float()
            rows = rows * scales[wanted, :1] + scales[wanted, 1:]
            bags = torch.zeros(len(offsets), self.dim)
            owner = torch.searchsorted(offsets, torch.arange(len(wanted)), right=True) - 1
            outputs.append(bags.index_add_(0, owner, rows))
        return torch.cat(outputs, 1)


def generate_requests(count, batch, bag, rows, tables, seed):
    generator = torch.Generator().manual_seed(seed)
    requests = []
    for _ in range(count):
        indices = torch.randint(0, rows, (batch * bag * tables,), generator=generator)
        requests.append((indices, torch.arange(0, batch * bag, bag)))
    return requests
