"""Imports torch: several hundred MiB of address space."""

import torch

print("sum", torch.ones(1000).sum().item())
