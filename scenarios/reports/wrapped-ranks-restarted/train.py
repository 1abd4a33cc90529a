"""Trains a regressor of spectra on this rank's part of them; all ranks average their parameters every few steps"""

import argparse
import errno
import os
import time

import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD_SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
START = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
SPECTRA, CHANNELS, BATCH, STEP_S, AVERAGE_EVERY = 16_000, 512, 32, 0.09, 5
# The blocks of the object storage that were unreadable in that night: rank and block, for each start of the training
UNREADABLE = {0: (1, 52), 1: (0, 41), 2: (1, 47)}


class ObjectStorage:
    """Reads blocks of spectra, and keeps those that it has read"""

    def __init__(self):
        generator = torch.Generator().manual_seed(RANK)
        self.spectra = torch.randn(SPECTRA, CHANNELS, generator=generator)
        self.targets = self.spectra[:, :16].square().mean(1, keepdim=True)

    def read(self, block):
        if UNREADABLE.get(START) == (RANK, block):
            raise OSError(errno.EIO, os.strerror(errno.EIO), f"spectra/{RANK}/{block}")
        rows = torch.arange(block * BATCH, (block + 1) * BATCH) % SPECTRA
        return self.spectra[rows], self.targets[rows]


class Averager:
    """The mean of the parameters of all ranks, through the store of the agent"""

    def __init__(self):
        self.store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
        self.round = 0

    def key(self, rank, number):
        return f"start{START}/round{number}/rank{rank}"

    @torch.no_grad()
    def average(self, parameters):
        flat = nn.utils.parameters_to_vector(parameters)
        self.store.set(self.key(RANK, self.round), flat.numpy().tobytes())
        total = flat.clone()
        for rank in range(WORLD_SIZE):
            if rank != RANK:
                total += torch.frombuffer(bytearray(self.store.get(self.key(rank, self.round))), dtype=torch.float32)
        nn.utils.vector_to_parameters(total / WORLD_SIZE, parameters)
        if self.round:
            self.store.delete_key(self.key(RANK, self.round - 1))
        self.round += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(CHANNELS, options.width), nn.GELU(), nn.Linear(options.width, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    storage, averager = ObjectStorage(), Averager()
    for step in range(options.steps):
        until = time.monotonic() + STEP_S
        inputs, targets = storage.read(step)
        while True:
            loss = nn.functional.mse_loss(model(inputs + 0.05 * torch.randn_like(inputs)), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > until:
                break
        if step % AVERAGE_EVERY == AVERAGE_EVERY - 1:
            averager.average(list(model.parameters()))
        if step % 20 == 0:
            print(f"rank {RANK} step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
