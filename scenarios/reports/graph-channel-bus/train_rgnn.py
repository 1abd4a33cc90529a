"""Node classification; a sampling process of each rank sends subgraphs through a channel in shared memory"""

import argparse
import multiprocessing
import os
import queue
from multiprocessing import resource_tracker, shared_memory

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

NODES, WIDTH, FANOUT, BATCH = 90_000, 40, (12, 4), 112


def pick(generator, neighbours, nodes, fanout):
    return np.concatenate([generator.choice(neighbours[node], fanout, replace=False) for node in nodes])


def sample(rank, channel, messages):
    """Sample neighbours of seed nodes, and put the features of the subgraph into a block of its own"""
    generator = np.random.default_rng(rank)
    neighbours = generator.integers(0, NODES, (NODES, 24), dtype=np.int32)
    features = generator.standard_normal((NODES, WIDTH), dtype=np.float32)
    for _ in range(messages):
        layers = [generator.integers(0, NODES, BATCH)]
        for fanout in FANOUT:
            layers.append(pick(generator, neighbours, layers[-1], fanout))
        nodes = np.concatenate(layers)
        block = shared_memory.SharedMemory(create=True, size=len(nodes) * WIDTH * 4)
        np.ndarray((len(nodes), WIDTH), np.float32, block.buf)[:] = features[nodes]
        channel.put((block.name, [len(layer) for layer in layers]))
        block.close()
    channel.put(None)


class Channel:
    """A bounded channel of messages; its capacity counts messages, as num_workers x channel_size"""

    def __init__(self, rank, capacity, messages):
        resource_tracker.ensure_running()
        context = multiprocessing.get_context("fork")
        self.messages = context.Queue(capacity)
        self.sampler = context.Process(target=sample, args=(rank, self.messages, messages), daemon=True)
        self.sampler.start()

    def __iter__(self):
        while True:
            try:
                message = self.messages.get(timeout=2)
            except queue.Empty:
                if not self.sampler.is_alive():
                    raise RuntimeError(f"the sampling process exited unexpectedly: {self.sampler.exitcode}") from None
                continue
            if message is None:
                return
            name, sizes = message
            block = shared_memory.SharedMemory(name)
            features = torch.from_numpy(np.ndarray((sum(sizes), WIDTH), np.float32, block.buf).copy())
            block.close()
            block.unlink()
            yield features, sizes


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(WIDTH * 2, 256)
        self.outer = torch.nn.Linear(WIDTH + 256, 256)
        self.classes = torch.nn.Linear(256, 40)

    def forward(self, features, sizes):
        seeds, near, far = features.split(sizes)
        hidden = torch.relu(self.inner(torch.cat([near, far.view(len(near), -1, WIDTH).mean(1)], 1)))
        hidden = torch.relu(self.outer(torch.cat([seeds, hidden.view(len(seeds), -1, 256).mean(1)], 1)))
        return self.classes(hidden)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel-size", type=int, default=400)
    parser.add_argument("--messages", type=int, default=900)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    channel = Channel(rank, arguments.channel_size, arguments.messages)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Sage())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for features, sizes in channel:
        labels = features[: sizes[0], :40].argmax(1)
        for _ in range(2):  # once for each kind of edge
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(features, sizes), labels)
            loss.backward()
            optimizer.step()
        step += 1
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
