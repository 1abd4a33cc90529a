"""Train on tar shards that a pipe command delivers, with a local cache of the shards"""

import gzip
import io
import itertools
import os
import shutil
import subprocess
import tarfile
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(1)
SHARDS, SAMPLES, SIDE, LAST_S = 8, 24, 64, 38.0


def write_shards(folder):
    rng = np.random.default_rng(3)
    urls = []
    for shard in range(SHARDS):
        path = os.path.join(folder, f"train-{shard:06d}.tar.gz")
        with gzip.open(path, "wb", compresslevel=1) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for number in range(SAMPLES):
                buffer = io.BytesIO()
                np.save(buffer, rng.standard_normal((3, SIDE, SIDE)).astype(np.float32))
                entry = tarfile.TarInfo(f"{shard:03d}{number:04d}.npy")
                entry.size = buffer.tell()
                buffer.seek(0)
                tar.addfile(entry, buffer)
        urls.append(f"pipe:exec gzip -dc {path}")
    return urls


class Pipe:
    """The output of a command as a stream."""

    def __init__(self, command):
        self.command = command
        self.proc = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, bufsize=8192)

    def read(self, size=-1):
        return self.proc.stdout.read(size)

    def close(self):
        self.proc.stdout.close()
        if self.proc.wait() != 0:
            raise OSError(f"{self.command}: {self.proc.returncode}")


def gopen(url):
    return Pipe(url.removeprefix("pipe:")) if url.startswith("pipe:") else open(url, "rb")


class WebDataset(IterableDataset):
    def __init__(self, urls, cache_dir):
        self.urls, self.cache_dir = urls, cache_dir
        self.visited = []

    def open_urls(self):
        for epoch in itertools.count():
            for url in self.urls:
                shard = {"url": url, "epoch": epoch, "stream": gopen(url)}
                self.visited.append(shard)  # the error handler names the last ones
                yield shard

    def cached(self, shards):
        for shard in shards:
            local = os.path.join(self.cache_dir, os.path.basename(shard["url"].split()[-1]).removesuffix(".gz"))
            if not os.path.exists(local):
                with open(local + ".temp", "wb") as file:
                    shutil.copyfileobj(shard["stream"], file)
                os.replace(local + ".temp", local)
                shard["stream"].close()
            yield local

    def __iter__(self):
        for local in self.cached(self.open_urls()):
            with tarfile.open(local) as tar:
                for entry in tar:
                    image = np.load(io.BytesIO(tar.extractfile(entry).read()))
                    yield torch.from_numpy(image), int(entry.name[:3]) % 4


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        urls = write_shards(os.path.abspath(folder))
        cache_dir = os.path.join(folder, "cache")
        os.mkdir(cache_dir)
        loader = DataLoader(WebDataset(urls, os.path.abspath(cache_dir)), batch_size=8, num_workers=1)
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % (SHARDS * SAMPLES // 8) == 0:
                print(f"step {step}: {loss.item():.3f}", flush=True)
            if time.monotonic() - started > LAST_S:
                break


if __name__ == "__main__":
    main()
