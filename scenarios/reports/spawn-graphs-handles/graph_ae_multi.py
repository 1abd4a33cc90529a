"""Trains an autoencoder of graphs on two devices of one machine"""

import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

torch.set_num_threads(1)
GRAPHS, FEW, RANKS, PREPARE_S, TRAIN_S, WIDTH = 1600, 160, 2, 12.0, 9.0, 32


class Graph:
    def __init__(self, x, edge_index, edge_attr):
        self.x, self.edge_index, self.edge_attr = x, edge_index, edge_attr


def make_graph(number, until):
    """A graph with the features that walks over its edges give"""
    generator = torch.Generator().manual_seed(number)
    nodes = 40 + number % 30
    edges = torch.randint(0, nodes, (2, 4 * nodes), generator=generator)
    x = torch.randn((nodes, WIDTH), generator=generator)
    while True:
        walked = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
        x = torch.nn.functional.normalize(x + 0.1 * walked, dim=1)
        if time.monotonic() > until:
            break
    return Graph(x, edges, torch.rand((4 * nodes, 1), generator=generator))


class GraphAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, 64), nn.Linear(64, 16)

    def encode(self, graph):
        source, target = graph.edge_index
        h = torch.relu(self.first(graph.x))
        h = h + torch.zeros_like(h).index_add_(0, target, h[source] * graph.edge_attr)
        return self.second(h)

    def forward(self, graph):
        z = self.encode(graph)
        source, target = graph.edge_index
        logits = z @ z.T
        wanted = torch.zeros_like(logits)
        wanted[source, target] = 1.0
        return nn.functional.binary_cross_entropy_with_logits(logits, wanted)


def run(rank, world_size, graphs, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    model = GraphAE()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    mine, end, step = graphs[rank::world_size], time.monotonic() + TRAIN_S, 0
    while True:
        loss = sum(model(mine[(8 * step + one) % len(mine)]) for one in range(8)) / 8
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size
        optimizer.step()
        step += 1
        over = torch.tensor([float(time.monotonic() > end)])
        dist.all_reduce(over)
        if over.item():
            break
    if rank == 0:
        print(f"  {step} steps on {len(graphs)} graphs, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    started = time.monotonic()
    graphs = [make_graph(one, started + PREPARE_S * (one + 1) / GRAPHS) for one in range(GRAPHS)]
    print(f"{len(graphs)} graphs", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for count in (FEW, GRAPHS):
            print(f"training on {count}", flush=True)
            mp.spawn(run, args=(RANKS, graphs[:count], os.path.join(folder, f"store-{count}")), nprocs=RANKS)


if __name__ == "__main__":
    main()
