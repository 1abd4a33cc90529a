"""Sweeps over a transducer from lemmas to inflected forms"""

import gc
import time

import torch
from torch import nn

from agent import Agent

torch.set_num_threads(1)
SECONDS, RUN_S, LENGTH, SYMBOLS, SAMPLES, CAPACITY = 38.0, 0.55, 48, 96, 16_384, 2 << 30
SPACE = {"hidden": [64, 96, 128], "embedding": [32, 64], "batch_size": [32, 1024, 2048, 4096]}


class Device:
    """Counts what the tensors of a step would take on the accelerator"""

    def __init__(self, capacity):
        self.capacity = capacity

    def reserve(self, *shape):
        wanted = 4
        for size in shape:
            wanted *= size
        if wanted > self.capacity:
            raise RuntimeError(f"out of memory: tried to allocate {wanted / 2**30:.2f} GiB")


class Transducer(nn.Module):
    def __init__(self, device, config):
        super().__init__()
        self.device = device
        self.embedding = nn.Embedding(SYMBOLS, config["embedding"])
        self.encoder = nn.LSTM(config["embedding"], config["hidden"], batch_first=True)
        self.head = nn.Linear(config["hidden"], SYMBOLS)

    def forward(self, source):
        self.device.reserve(source.shape[0], LENGTH, LENGTH, self.head.in_features, 4)
        encoded, _ = self.encoder(self.embedding(source))
        return self.head(encoded)


def collate(samples, batch_size):
    order = torch.randperm(len(samples))
    return [samples[order[start : start + batch_size]] for start in range(0, len(samples), batch_size)]


def train(config):
    until = time.monotonic() + RUN_S
    generator = torch.Generator().manual_seed(config["hidden"])
    samples = torch.randint(0, SYMBOLS, (SAMPLES, LENGTH), generator=generator)
    batches = collate(samples, config["batch_size"])
    model = Transducer(Device(CAPACITY), config)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    step, total = 0, 0.0
    while step == 0 or time.monotonic() < until:
        size = min(32, config["batch_size"]) if time.monotonic() < until - 0.1 else config["batch_size"]
        batch = batches[step % len(batches)][:size]
        loss = nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step, total = step + 1, total + loss.item()
        del loss
    del model, optimizer, batches, samples
    gc.collect()
    return total / step


def main():
    torch.manual_seed(0)
    number, failed = Agent(train, SPACE, seed=4).run(SECONDS)
    print(f"{number} runs, {len(failed)} of them failed", flush=True)


if __name__ == "__main__":
    main()
