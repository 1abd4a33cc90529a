"""Starts torch.compile's pool of workers, lets each import torch, and then fills memory."""

import sys
import time

import torch
from torch._inductor.async_compile import AsyncCompile

if __name__ == "__main__":
    if sys.argv[1] == "pool":
        AsyncCompile.warm_pool()
        compiled = torch.compile(lambda x: (x.sin() + x.cos()).relu().sum())
        compiled(torch.ones(100))
    time.sleep(3)
    model = torch.ones(int(sys.argv[2]) << 20, dtype=torch.uint8)
    time.sleep(1)
    print("model", model.numel())
