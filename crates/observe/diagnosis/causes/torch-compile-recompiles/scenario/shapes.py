"""A compiled step, called with ever new shapes (new), or with one (same), for so many seconds."""

import sys
import time

import torch
import torch._dynamo

torch._dynamo.config.recompile_limit = 10_000
torch._dynamo.config.accumulated_recompile_limit = 10_000


def step(x):
    for _ in range(4):
        x = torch.relu(x @ x.T @ x) + 1
    return x.sum()


compiled = torch.compile(step, dynamic=False, backend="aot_eager")
end, size = time.monotonic() + float(sys.argv[2]), 2
while time.monotonic() < end:
    compiled(torch.ones(size, 4))
    size += sys.argv[1] == "new"
    time.sleep(0.02)
