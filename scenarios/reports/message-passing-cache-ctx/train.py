"""Predict a property of molecules with three layers of message passing"""

import time

import torch
from backend import Graph, copy_reduce
from torch import nn

torch.set_num_threads(1)
MOLECULES, ATOMS, BONDS, WIDTH, RUN_S = 48, 32, 20, 64, 28.0


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.message = nn.Linear(WIDTH, WIDTH)
        self.update = nn.Sequential(nn.Linear(2 * WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, graph, features):
        received = copy_reduce(graph, self.message(features))
        return features + self.update(torch.cat([features, received], dim=1))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.atoms = nn.Embedding(20, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.readout = nn.Linear(WIDTH, 1)

    def forward(self, graph, kinds):
        features = self.atoms(kinds)
        for layer in self.layers:
            features = layer(graph, features)
        summed = torch.zeros(MOLECULES, WIDTH).index_add_(0, graph.members, features)
        return self.readout(summed / ATOMS).squeeze(1)


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(3)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    end, step, running = time.monotonic() + RUN_S, 0, 0.0
    while time.monotonic() < end:
        graph = Graph.batch(MOLECULES, ATOMS, BONDS, generator)
        kinds = torch.randint(0, 20, (graph.nodes,), generator=generator)
        target = kinds.view(MOLECULES, ATOMS).float().mean(dim=1) / 10
        loss = nn.functional.mse_loss(model(graph, kinds), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = 0.95 * running + 0.05 * loss.item()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {running:.4f}", flush=True)


if __name__ == "__main__":
    main()
