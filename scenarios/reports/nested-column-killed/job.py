"""Classifies proteins by a tensor of four dimensions, which a map adds to each graph"""

import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

from columns import Dataset, NestedColumn, NestedWriter

torch.set_num_threads(1)
GRAPH_S = 0.1


def graph_sizes():
    """The number of nodes of each graph; most are small, and a few are not"""
    sizes = np.random.default_rng(5).integers(14, 23, 190) * 2
    sizes[168] = 240
    return sizes.tolist()


def create_4d_tensor(nodes, generator):
    return generator.random((nodes, 2 * nodes, nodes // 2, 1), dtype=np.float32)


def build(folder):
    generator, sizes = np.random.default_rng(0), graph_sizes()
    writer = NestedWriter(folder)
    for nodes in sizes:
        writer.append(create_4d_tensor(nodes, generator))
    writer.close()
    return Dataset({"x_big": NestedColumn(folder), "label": [nodes % 4 // 2 for nodes in sizes]})


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(4), nn.Flatten(), nn.Linear(512, 2)
        )

    def forward(self, tensor):
        return self.layers(nn.functional.adaptive_avg_pool3d(tensor, 16)[None])


def main():
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        dataset = build(folder)
        dataset.set_format("torch")
        print(f"{len(dataset)} graphs, {os.path.getsize(os.path.join(folder, 'values')) >> 20} MiB", flush=True)
        for index in range(len(dataset)):
            row = dataset[index]
            tensor, label = row["x_big"].float().permute(3, 0, 1, 2), row["label"][None]
            until = time.monotonic() + GRAPH_S
            while True:
                loss = nn.functional.cross_entropy(model(tensor), label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            if index % 20 == 0:
                print(f"graph {index}: {tensor.shape[1]} nodes, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
