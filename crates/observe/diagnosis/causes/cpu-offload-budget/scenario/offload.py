"""One step over chunks that are there already, whose activations are saved on the host (offload), or computed again
(again), with so much address space left for it (MiB)."""

import contextlib
import os
import resource
import sys

import torch
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint


def leave(mib):
    """Allows that much more address space than is in use."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (mib << 20),) * 2)


def step(head, chunks, way):
    with save_on_cpu(pin_memory=True) if way == "offload" else contextlib.nullcontext():
        outputs = [checkpoint(head, x, use_reentrant=False) if way == "again" else head(x) for x in chunks]
    torch.cat(outputs).sum().backward()


if __name__ == "__main__":
    way, room = sys.argv[1], int(sys.argv[2])
    # What it saves is large, and what it computes is small.
    head = torch.nn.Sequential(torch.nn.Linear(512, 4), torch.nn.GELU())
    step(head, torch.ones(2, 64, 512), way)  # threads and arenas are made before the limit
    chunks = torch.ones(24, 8192, 512)  # 16 MiB each
    leave(room)
    step(head, chunks, way)
    print("done")
