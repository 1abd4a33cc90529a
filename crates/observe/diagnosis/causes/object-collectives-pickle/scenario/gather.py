"""Two ranks, each with predictions of so many MiB: gathered as objects in both (objects), or summed up (sums)."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(number, kind, size, store):
    os.environ["RANK"] = str(number)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=number, world_size=2, timeout=datetime.timedelta(seconds=60)
    )
    predictions = [torch.full((1 << 20,), number, dtype=torch.uint8).numpy() for _ in range(size)]
    time.sleep(2)
    dist.barrier()
    if kind == "objects":
        everything = [None, None]
        dist.all_gather_object(everything, predictions)
        print(sum(len(part) for part in everything))
    else:
        sums = torch.tensor([float(sum(int(one[0]) for one in predictions))])
        dist.all_reduce(sums)
        print(sums.item())
    time.sleep(2)
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(rank, (sys.argv[1], int(sys.argv[2]), os.path.abspath(sys.argv[3])), 2)
