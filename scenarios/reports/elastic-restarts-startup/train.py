"""Train a segmentation network on all ranks."""

import os
import zlib

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
CONFIG = {"crop": 256, "model": {"width": 24, "depth": 3}, "optimizer": {"name": "sgd", "momentum": 0.9}}


def read_images(rank, count):
    """Unpack the images of a rank."""
    rng = np.random.default_rng(rank)
    packed = [zlib.compress(rng.integers(0, 24, (256, 256, 3), dtype=np.uint8).tobytes(), 6) for _ in range(8)]
    images = np.empty((count, 256, 256, 3), dtype=np.uint8)
    for number in range(count):
        data = zlib.decompress(packed[number % len(packed)])
        images[number] = np.frombuffer(data, dtype=np.uint8).reshape(256, 256, 3)
        if number % 3 == 0:
            images[number] = np.sort(images[number], axis=0)
    return torch.from_numpy(images)


def main():
    rank = int(os.environ["RANK"])
    images = read_images(rank, 720)
    print(f"rank {rank} has {len(images)} images", flush=True)
    width = CONFIG["model"]["width"]
    model = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["optimizer"]["lr"])
    dist.init_process_group("gloo")
    model = DistributedDataParallel(model)
    for start in range(0, len(images), 8):
        batch = images[start : start + 8].permute(0, 3, 1, 2).float() / 255
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
