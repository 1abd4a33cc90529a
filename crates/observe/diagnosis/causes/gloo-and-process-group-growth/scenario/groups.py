"""Two ranks: a new process group in each step (keep), one that is destroyed again (destroy), or all at the start."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

STEPS = 60


def step(group):
    dist.all_reduce(torch.ones(1000), group=group)
    time.sleep(0.2)


def rank(number, kind, store):
    os.environ["RANK"] = str(number)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=number, world_size=2, timeout=datetime.timedelta(seconds=60)
    )
    if kind == "at-start":
        groups = [dist.new_group(backend="gloo") for _ in range(30)]
        for turn in range(STEPS):
            step(groups[turn % 30])
    else:
        for _ in range(STEPS):
            group = dist.new_group(backend="gloo")
            step(group)
            if kind == "destroy":
                dist.destroy_process_group(group)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1], os.path.abspath(sys.argv[2])), 2)
