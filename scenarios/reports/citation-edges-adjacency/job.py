"""Node classification on a graph of citations with a graph convolution, all nodes in one batch"""

import time

import numpy as np
import torch
from torch import nn

from graph import Graph

torch.set_num_threads(2)
NODES, EDGES, SECONDS, CLASSES = 200_000, 600_000, 32.0, 7


class GCN(nn.Module):
    def __init__(self, adjacency, width):
        super().__init__()
        self.adjacency = adjacency
        self.first, self.second = nn.Linear(width, 32), nn.Linear(32, CLASSES)

    def forward(self, features):
        hidden = torch.relu(torch.sparse.mm(self.adjacency, self.first(features)))
        return torch.sparse.mm(self.adjacency, self.second(hidden))


def main():
    started = time.monotonic()
    generator = np.random.default_rng(0)
    labels = generator.integers(0, CLASSES, NODES)
    features = generator.standard_normal((NODES, 24), dtype=np.float32)
    features[:, :CLASSES] += np.eye(CLASSES, dtype=np.float32)[labels]
    sources = generator.integers(0, NODES, EDGES)
    graph = Graph(features, sources, np.minimum((sources * generator.random(EDGES)).astype(np.int64), NODES - 1))
    print(f"graph of {NODES} nodes after {time.monotonic() - started:.1f} s", flush=True)
    torch.manual_seed(0)
    model = GCN(graph.adjacency(), features.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    inputs, targets = torch.from_numpy(features), torch.from_numpy(labels)
    epoch = 0
    while time.monotonic() - started < SECONDS:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch += 1
        if epoch % 10 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
    walks = [graph.random_walk(int(start), 8, generator) for start in generator.integers(0, NODES, 50)]
    print(f"walks of {np.mean([len(walk) for walk in walks]):.1f} nodes", flush=True)


if __name__ == "__main__":
    main()
