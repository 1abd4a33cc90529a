"""The pipeline of a webdataset user: shards, decoded samples, a shuffle buffer of samples in each worker of each rank."""

import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

_SAMPLE_SHUFFLE_SIZE = 5000
_SAMPLE_SHUFFLE_INITIAL = 300


def shard_list(urls):
    while True:
        yield from urls


def split_by_node(src):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    for n, url in enumerate(src):
        if n % world == rank:
            yield url


def split_by_worker(src):
    info = get_worker_info()
    for n, url in enumerate(src):
        if n % info.num_workers == info.id:
            yield url


def tarfile_to_samples(src):
    for url in src:
        rng = np.random.default_rng(url)
        base = rng.integers(0, 255, (500, 16 * 16 * 3), np.uint8)
        for n in range(500):
            time.sleep(0.005)  # `pipe:curl` is not faster
            yield {"__key__": f"{url}/{n:06d}", "jpg": base[n].tobytes(), "cls": int(base[n, 0]) % 10}


def decode(src):
    for sample in src:
        small = torch.frombuffer(bytearray(sample["jpg"]), dtype=torch.uint8).view(1, 3, 16, 16).float()
        image = torch.nn.functional.interpolate(small, size=(288, 288), mode="bicubic")
        image = torch.nn.functional.interpolate(image, size=(128, 128), mode="bilinear", antialias=True)
        yield dict(sample, jpg=image[0].clamp_(0, 255).byte().numpy())


def shuffle(src, bufsize, initial):
    rng = random.Random(os.getpid())
    buf = []
    for sample in src:
        buf.append(sample)
        if len(buf) < bufsize:
            try:
                buf.append(next(src))
            except StopIteration:
                pass
        if len(buf) >= initial:
            k = rng.randint(0, len(buf) - 1)
            out, buf[k] = buf[k], buf[-1]
            buf.pop()
            yield out


class DataPipeline(IterableDataset):
    def __init__(self, *stages):
        self.stages = stages

    def __iter__(self):
        torch.set_num_threads(1)
        stream = self.stages[0]()
        for stage in self.stages[1:]:
            stream = stage(stream)
        for sample in stream:
            yield torch.from_numpy(sample["jpg"]).float() / 255, sample["cls"]


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    pipeline = DataPipeline(
        lambda: shard_list(list(range(64))),
        split_by_node,
        split_by_worker,
        tarfile_to_samples,
        decode,
        lambda src: shuffle(src, _SAMPLE_SHUFFLE_SIZE, _SAMPLE_SHUFFLE_INITIAL),
    )
    loader = DataLoader(pipeline, batch_size=32, num_workers=2)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 7, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(6), torch.nn.Flatten()
    )
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(net, torch.nn.Linear(24 * 36, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (images, classes) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
        if step == 4000:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
