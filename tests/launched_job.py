"""A training loop of several ranks, of which one goes wrong: stock torch, gloo, RANK and WORLD_SIZE from any launcher.

    launched_job.py --fault none|cgroup|mappings|leak|shm [--rank 2] [--steps 200]

`cgroup`, `leak`: the rank enters the cgroup in LAUNCHED_CGROUP and takes more than it allows, at once or batch by
batch. `mappings`: its loader brings 70,000 tensors through torch's segments. `shm`: its loader's batches fill /dev/shm.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

HEALTHY_STEPS = 60


class Many(Dataset):
    """70,000 small tensors, each sent to a spawned worker in a segment of its own."""

    def __init__(self):
        self.samples = [torch.zeros(80) for _ in range(70_000)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Large(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.ones(8 << 20)


def cgroup(_):
    enter_cgroup()
    weights = torch.zeros(1 << 30, dtype=torch.uint8)
    weights.fill_(1)


def leak(batches):
    enter_cgroup()
    outputs = []
    for n in range(batches):
        outputs.append(torch.full((1 << 20,), float(n)))
        time.sleep(0.05)


def mappings(_):
    torch.multiprocessing.set_sharing_strategy("file_system")
    for batch in DataLoader(Many(), batch_size=100, num_workers=1, multiprocessing_context="spawn"):
        batch.sum()


def shm(_):
    held = []
    for batch in DataLoader(Large(), batch_size=1, num_workers=1):
        held.append(batch)


def enter_cgroup():
    with open(os.path.join(os.environ["LAUNCHED_CGROUP"], "cgroup.procs"), "w") as file:
        file.write(str(os.getpid()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="none")
    parser.add_argument("--rank", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    # Slurm has names of its own; a Ray actor sets them itself.
    for name, of_slurm in (("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS")):
        os.environ.setdefault(name, os.environ.get(of_slurm, "0"))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    total = torch.zeros(1)
    for step in range(args.steps):
        if step == HEALTHY_STEPS and rank == args.rank and args.fault != "none":
            {"cgroup": cgroup, "leak": leak, "mappings": mappings, "shm": shm}[args.fault](1000)
        dist.all_reduce(total.fill_(rank))
        time.sleep(0.05)
    print(f"rank {rank}: {args.steps} steps, sum {total.item():.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
