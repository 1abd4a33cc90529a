"""Two faults at once: logs that are opened for each step and never closed, and outputs that are kept for each step."""

import os
import resource
import shutil
import tempfile

import torch

resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
folder = tempfile.mkdtemp(prefix="step-logs-")
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
outputs, logs = [], []
try:
    for step in range(4000):
        x = torch.randn(512, 64)
        y = model(x)
        loss = (y - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append({"loss": loss.detach(), "preds": y.detach()})
        for _ in range(4):
            model(x)
        log = open(os.path.join(folder, f"{step}.log"), "w")
        log.write(f"{loss.item()}\n")
        log.flush()
        logs.append(log)
finally:
    shutil.rmtree(folder, ignore_errors=True)
