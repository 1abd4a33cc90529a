"""Matrix products of 2000 x 2000: memory rises at the start, and stays."""

import torch

a = torch.randn(2000, 2000)
b = torch.randn(2000, 2000)
for _ in range(20):
    c = a @ b
    a = c / c.norm() * 2000
print("norm", a.norm().item())
