"""Loads, saves or copies 400 MiB of weights, with so much address space left for it (MiB)."""

import copy
import io
import os
import resource
import sys

import torch


def leave(mib):
    """Allows that much more address space than is in use."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (mib << 20),) * 2)


def load(path):
    return torch.load(path, weights_only=True)


def save(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer


if __name__ == "__main__":
    work, room, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    state = {f"layer {n}": torch.ones(50 << 20, dtype=torch.uint8) for n in range(8)}
    if work == "load":
        torch.save(state, path)
        del state
        torch.load(path, mmap=True, weights_only=True)
    leave(room)
    result = {"load": lambda: load(path), "save": lambda: save(state), "copy": lambda: copy.deepcopy(state)}[work]()
    print("done", type(result).__name__)
