"""Trains a fully sharded model, and saves it every now and then"""

import os
import tempfile
import time

import torch
import torch.distributed as dist
from sharded import FullyShardedModel
from torch import multiprocessing

torch.set_num_threads(1)
RANKS, WIDTH, LAYERS, BATCH = 2, 3072, 7, 16
SAVE_EVERY_S, SAVES = 19.0, 2


def agreed(flag):
    """What rank 0 says"""
    told = torch.tensor([float(flag)])
    dist.broadcast(told, 0)
    return bool(told.item())


def save_checkpoint(model, path, step, rank):
    state = model.full_state_dict()
    if rank == 0:
        torch.save({"model": state, "step": step}, path)
        print(f"saved {len(state)} tensors after step {step}", flush=True)
    dist.barrier()


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    torch.manual_seed(rank)
    model = FullyShardedModel(WIDTH, LAYERS)
    order = torch.randperm(WIDTH, generator=torch.Generator().manual_seed(7))
    begin, step, saves = time.monotonic(), 0, 0
    while saves < SAVES:
        x = torch.randn(BATCH, WIDTH)
        loss = (model(x) - x[:, order]).square().mean()
        loss.backward()
        step += 1
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        if agreed(time.monotonic() - begin > SAVE_EVERY_S * (saves + 1)):
            save_checkpoint(model, os.path.join(folder, "checkpoint.pt"), step, rank)
            saves += 1
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(train, args=(folder,), nprocs=RANKS, start_method="fork")


if __name__ == "__main__":
    main()
