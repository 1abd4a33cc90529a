"""Trains a small network for so many seconds, with a profiler around all of it (whole) or for a few steps (schedule)."""

import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule

torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=False)
steps = None if sys.argv[1] == "whole" else schedule(wait=5, warmup=2, active=5, repeat=1)
end = time.monotonic() + float(sys.argv[2])
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=steps) as profiler:
    while time.monotonic() < end:
        loss = model(torch.randn(512, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if steps is not None:
            profiler.step()
print("loss", loss.item())
