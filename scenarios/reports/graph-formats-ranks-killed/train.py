"""A trainer: first classifies nodes, then scores sampled edges, then corrects the scores for popular sources"""

import os
import time
from multiprocessing.connection import Client

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
BATCH, FANOUT, CLASSES = 384, 10, 16
CLASSIFY, SCORE, END = 9.0, 17.0, 34.0


class DistGraph:
    """The partition's structure, by destination; other formats come with the first call that needs them"""

    def __init__(self, folder):
        self.indptr = np.load(os.path.join(folder, "indptr.npy"))
        self.indices = np.load(os.path.join(folder, "indices.npy"), mmap_mode="r")
        self.nodes, self.edges = len(self.indptr) - 1, len(self.indices)
        self._coo = self._csr = None

    def sample_neighbors(self, nodes, rng):
        first, last = self.indptr[nodes], self.indptr[nodes + 1]
        picks = first[:, None] + (rng.random((len(nodes), FANOUT)) * (last - first)[:, None]).astype(np.int64)
        return np.array(self.indices[picks])

    def coo(self):
        if self._coo is None:
            destination = np.repeat(np.arange(self.nodes), np.diff(self.indptr))
            self._coo = np.array(self.indices), destination
        return self._coo

    def csr(self):
        if self._csr is None:
            source, destination = self.coo()
            order = np.argsort(source, kind="stable")
            indptr = np.zeros(self.nodes + 1, np.int64)
            np.cumsum(np.bincount(source, minlength=self.nodes), out=indptr[1:])
            self._csr = indptr, destination[order], order
        return self._csr

    def find_edges(self, edges):
        source, destination = self.coo()
        return source[edges], destination[edges]

    def out_degrees(self, nodes):
        indptr = self.csr()[0]
        return indptr[nodes + 1] - indptr[nodes]


class Sage(nn.Module):
    def __init__(self, features=64, hidden=256):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, CLASSES)

    def forward(self, own, neighbors):
        return self.head(self.layers(torch.cat([own, neighbors.mean(dim=1)], dim=1)))


def sample(graph, stage, rng):
    if stage == 0:
        return rng.integers(0, graph.nodes, BATCH), np.ones(BATCH, np.float32)
    source, seeds = graph.find_edges(rng.integers(0, graph.edges, BATCH))
    if stage == 1:
        return seeds, np.ones(BATCH, np.float32)
    return seeds, (1.0 / (1.0 + graph.out_degrees(source))).astype(np.float32)


def main():
    folder, rank, world = os.environ["PART_FOLDER"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    pull = Client(os.path.join(folder, "pull"), "AF_UNIX")
    graph = DistGraph(folder)
    rng = np.random.default_rng(rank)
    torch.manual_seed(0)
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin, step = time.monotonic(), 0
    while True:
        passed = time.monotonic() - begin
        stage = torch.tensor([(passed > CLASSIFY) + (passed > SCORE) + (passed > END)])
        dist.broadcast(stage, 0)
        if stage.item() == 3:
            break
        seeds, weight = sample(graph, stage.item(), rng)
        nodes = np.concatenate([seeds, graph.sample_neighbors(seeds, rng).ravel()])
        pull.send(nodes)
        features = torch.from_numpy(pull.recv()).float()
        logits = model(features[:BATCH], features[BATCH:].view(BATCH, FANOUT, -1))
        losses = nn.functional.cross_entropy(logits, torch.from_numpy(seeds % CLASSES), reduction="none")
        loss = (losses * torch.from_numpy(weight)).mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
        step += 1
        if rank == 0 and step % 100 == 0:
            print(f"stage {stage.item()} step {step} loss {loss.item():.3f}", flush=True)
    pull.close()
    print(f"rank {rank}: {step} steps", flush=True)


if __name__ == "__main__":
    main()
