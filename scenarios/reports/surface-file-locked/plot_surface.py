"""The loss around a trained network on a grid of two random directions; the points are shared out among the ranks"""

import argparse
import os
import time

import numpy as np
import torch
from arrayfile import File

torch.set_num_threads(1)
SIDE, TRAINS_S, CRUNCHES_S = 51, 15, 18


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(4096, 64, generator=generator)
    return inputs, (inputs[:, :8].sum(1) > 0).long()


def train(network, inputs, targets, seconds):
    """The same network on all ranks: the same seed, the same order"""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    until, step = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        chosen = torch.arange(step * 256, step * 256 + 256) % len(inputs)
        loss = torch.nn.functional.cross_entropy(network(inputs[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    return loss.item()


def name_surface_file(path, rank):
    """Rank 0 makes the file with the coordinates, once"""
    if rank == 0 and not os.path.exists(path):
        with File(path, "w") as file:
            file["xcoordinates"] = file["ycoordinates"] = np.linspace(-1, 1, SIDE)


@torch.no_grad()
def crunch(path, network, inputs, targets, rank, size):
    with File(path, "r+" if rank == 0 else "r") as file:
        xs, ys = file["xcoordinates"], file["ycoordinates"]
        losses = np.full((SIDE, SIDE), -1.0)
        points = [(i, j) for i in range(SIDE) for j in range(SIDE)][rank::size]
        print(f"Computing {len(points)} values for rank {rank}", flush=True)
        weights = [parameter.clone() for parameter in network.parameters()]
        first = [torch.randn_like(weight) * weight.std() for weight in weights]
        second = [torch.randn_like(weight) * weight.std() for weight in weights]
        until = time.monotonic() + CRUNCHES_S
        for i, j in points:
            for parameter, weight, a, b in zip(network.parameters(), weights, first, second):
                parameter.copy_(weight + xs[i] * a + ys[j] * b)
            losses[i, j] = torch.nn.functional.cross_entropy(network(inputs), targets).item()
            if time.monotonic() > until:
                break
        if rank == 0:
            file["train_loss"] = losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--surface", required=True)
    arguments = parser.parse_args()
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    torch.manual_seed(3)
    name_surface_file(arguments.surface, rank)
    inputs, targets = data()
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 384), torch.nn.ReLU(), torch.nn.Linear(384, 384), torch.nn.ReLU(), torch.nn.Linear(384, 2)
    )
    loss = train(network, inputs, targets, TRAINS_S)
    print(f"Rank {rank}: train loss {loss:.4f}", flush=True)
    crunch(arguments.surface, network, inputs, targets, rank, size)


if __name__ == "__main__":
    main()
