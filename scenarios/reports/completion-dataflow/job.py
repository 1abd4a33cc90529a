"""Trains a completion network: from a partial cloud of points to a coarse complete one"""

import lzma
import time

import numpy as np
import torch
from torch import nn

from dataflow import COMPLETE, PARTIAL, BatchData, CompressedData, LocallyShuffleData, PrefetchData, RepeatedData

torch.set_num_threads(1)
SECONDS, CLOUDS, BATCH, COARSE = 36.0, 48, 8, 256


class PCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 128))
        self.second = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 512))
        self.decoder = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 3 * COARSE))

    def forward(self, partial):
        features = self.first(partial)
        joined = torch.cat([features, features.amax(1, keepdim=True).expand_as(features)], 2)
        return self.decoder(self.second(joined).amax(1)).view(-1, COARSE, 3)


def chamfer(first, second):
    distances = torch.cdist(first, second)
    return distances.amin(1).mean() + distances.amin(2).mean()


def prepare():
    """Stands in for the files of ShapeNet"""
    numbers, paths = np.random.default_rng(7), []
    for number in range(CLOUDS):
        points = numbers.standard_normal((PARTIAL + COMPLETE, 3)).astype(np.float32)
        points /= np.linalg.norm(points, axis=1, keepdims=True) * (1 + number % 3)
        paths.append(f"cloud-{number}.xz")
        with open(paths[-1], "wb") as file:
            file.write(lzma.compress(points.tobytes(), preset=0))
    return paths


def main():
    start = time.monotonic()
    flow = LocallyShuffleData(RepeatedData(CompressedData(prepare())), buffer_size=1100)
    prefetch = PrefetchData(BatchData(flow, BATCH), nr_prefetch=8)
    torch.manual_seed(0)
    model = PCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step, (partial, complete) in enumerate(prefetch.get_data()):
        coarse = model(torch.from_numpy(partial))
        loss = chamfer(coarse, torch.from_numpy(complete[:, :1024].copy()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        if time.monotonic() - start > SECONDS:
            break
    prefetch.stop()


if __name__ == "__main__":
    main()
