"""Reads batches of samples for some epochs, and computes a little between them"""

import argparse
import datetime
import glob
import hashlib
import json
import math
import os
import time

import numpy as np
import torch
import torch.distributed as dist

TIMEOUT = datetime.timedelta(seconds=12)


class Reader:
    """The share of the files that a rank reads"""

    def __init__(self, folder, rank, world, batch_size):
        self.files = sorted(glob.glob(os.path.join(folder, "*.npy")))[rank::world]
        self.batch_size = batch_size

    def __len__(self):
        return len(self.files) // self.batch_size

    def next(self):
        for number in range(len(self)):
            batch = self.files[number * self.batch_size : (number + 1) * self.batch_size]
            yield np.stack([self.read(path) for path in batch])

    def read(self, path):
        sample = np.load(path)
        for _ in range(30):
            hashlib.sha256(sample).digest()
        return sample


def compute(weights, batch):
    x = torch.from_numpy(batch).float().flatten(0, 1) / 255
    for _ in range(4):
        x = torch.tanh(x @ weights)
    return float(x.mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=12)
    arguments = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = dist.FileStore(arguments.store, world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=TIMEOUT)
    reader = Reader(arguments.data, rank, world, arguments.batch_size)
    weights = torch.randn(400, 400) / math.sqrt(400)
    times = []
    for epoch in range(arguments.epochs):
        started = time.monotonic()
        for step, batch in enumerate(reader.next(), 1):
            value = compute(weights, batch)
            dist.barrier()
            if rank == 0:
                print(f"epoch {epoch} step {step} of {len(reader)}: {value:.4f}", flush=True)
        times.append(time.monotonic() - started)
    summary = {"rank": rank, "epochs": len(times), "seconds": sum(times)}
    store.set(f"summary-{rank}", json.dumps(summary))
    store.wait([f"summary-{other}" for other in range(world)], datetime.timedelta(seconds=90))
    print("finished", summary, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
