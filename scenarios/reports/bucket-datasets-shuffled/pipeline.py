"""Pipelines of stages over the samples of tar shards"""

import glob
import io
import os
import random
import tarfile

import numpy as np
import torch
from torch.utils.data import IterableDataset


def resampled(urls, seed):
    source = random.Random(seed)
    while True:
        yield source.choice(urls)


def tarfile_to_samples(urls):
    for url in urls:
        with tarfile.open(url) as stream:
            for member in stream:
                yield {"__key__": member.name, "npy": stream.extractfile(member).read()}
                stream.members = []


def decode(samples):
    for sample in samples:
        image = torch.from_numpy(np.load(io.BytesIO(sample["npy"])))
        yield image.permute(2, 0, 1).float().div_(127.5).sub_(1.0)


def shuffle(samples, bufsize, initial, seed):
    source, buffer = random.Random(seed), []

    def pick():
        position = source.randrange(len(buffer))
        buffer[position], buffer[-1] = buffer[-1], buffer[position]
        return buffer.pop()

    for sample in samples:
        buffer.append(sample)
        if len(buffer) < bufsize:
            try:
                buffer.append(next(samples))
            except StopIteration:
                pass
        if len(buffer) >= initial:
            yield pick()
    while buffer:
        yield pick()


def batched(samples, size):
    batch = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == size:
            yield torch.stack(batch)
            batch = []


class Bucket(IterableDataset):
    """The images of one size"""

    def __init__(self, folder, batch_size, bufsize, initial=100, seed=0):
        self.urls = sorted(glob.glob(os.path.join(folder, "*.tar")))
        self.batch_size, self.bufsize, self.initial, self.seed = batch_size, bufsize, initial, seed

    def __iter__(self):
        samples = decode(tarfile_to_samples(resampled(self.urls, self.seed)))
        return batched(shuffle(samples, self.bufsize, self.initial, self.seed), self.batch_size)


def write_shards(folder, height, width, shards, images):
    source = np.random.default_rng(height)
    os.makedirs(folder)
    for shard in range(shards):
        with tarfile.open(os.path.join(folder, f"{shard:06d}.tar"), "w") as stream:
            for number in range(images):
                data = io.BytesIO()
                np.save(data, source.integers(0, 256, (height, width, 3), dtype=np.uint8))
                member = tarfile.TarInfo(f"{shard:03d}-{number:04d}.npy")
                member.size = data.tell()
                data.seek(0)
                stream.addfile(member, data)
