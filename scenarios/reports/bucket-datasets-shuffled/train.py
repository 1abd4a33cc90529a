"""Trains an autoencoder on images of several sizes, a bucket for each"""

import argparse
import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from pipeline import Bucket, write_shards

torch.set_num_threads(1)
BATCH, BUFFER, SHARDS, IMAGES, STEPS, STEP_S = 8, 5000, 3, 50, 1600, 0.13


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--buckets", nargs="+")
    arguments = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    source = random.Random(rank)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=4), nn.GELU(), nn.Conv2d(8, 16, 3, padding=1), nn.GELU(),
        nn.ConvTranspose2d(16, 3, 4, stride=4),
    )
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    with tempfile.TemporaryDirectory() as folder:
        iterators = []
        for number, name in enumerate(arguments.buckets):
            height, width = map(int, name.split("x"))
            write_shards(os.path.join(folder, name), height, width, SHARDS, IMAGES)
            bucket = Bucket(os.path.join(folder, name), BATCH, BUFFER, seed=len(arguments.buckets) * rank + number)
            loader = DataLoader(bucket, batch_size=None, num_workers=1, multiprocessing_context="fork")
            iterators.append(iter(loader))
        for step in range(1, STEPS + 1):
            until = time.monotonic() + STEP_S
            images = next(source.choice(iterators))
            while True:
                loss = (model(images) - images).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            if step % 20 == 0:
                size = "x".join(map(str, images.shape[2:]))
                print(f"step {step}: {size}, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
