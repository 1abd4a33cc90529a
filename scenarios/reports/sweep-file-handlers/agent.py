"""A sweep over a small graph network on a table; each run reads the table and logs into a file of its own"""

import argparse
import csv
import logging
import os
import sys

import torch
from tracking import Agent

logger = logging.getLogger("sweep")
logger.setLevel(logging.INFO)
logger.propagate = False


def write_table(path, rows=400, columns=24):
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))
    labels = (values[:, :4].sum(1) > 0).int()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for row, label in zip(values.tolist(), labels.tolist()):
            writer.writerow([*(f"{value:.4f}" for value in row), label])


def load_dataset(path):
    with open(path, newline="") as file:
        rows = torch.tensor([[float(value) for value in row] for row in csv.reader(file)])
    return rows[:, :-1], rows[:, -1].long()


class Network(torch.nn.Module):
    def __init__(self, width, hidden, dropout):
        super().__init__()
        self.first, self.second = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, 2)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, adjacency, features):
        hidden = torch.relu(adjacency @ self.first(features))
        return adjacency @ self.second(self.dropout(hidden))


def train(work, number, config):
    features, labels = load_dataset(os.path.join(work, "table.csv"))
    handler = logging.FileHandler(os.path.join(work, f"run-{number}.log"), mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    logger.info("run %d: %s", number, config)
    adjacency = torch.softmax(-torch.cdist(features, features), 1)
    network = Network(features.shape[1], config["hidden"], config["dropout"])
    optimizer = torch.optim.Adam(network.parameters(), lr=config["rate"])
    for epoch in range(25):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(adjacency, features), labels)
        loss.backward()
        optimizer.step()
        if epoch % 6 == 0:
            logger.info("epoch %d: loss %.4f", epoch, loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    work = parser.parse_args().work
    torch.set_num_threads(1)
    write_table(os.path.join(work, "table.csv"))
    grid = {
        "hidden": [16, 32, 64, 96, 128],
        "dropout": [0.0, 0.1, 0.2, 0.3, 0.5],
        "rate": [3e-4, 1e-3, 3e-3, 1e-2],
        "seed": [1, 2, 3, 4, 5],
    }
    sys.exit(Agent(grid, lambda number, config: train(work, number, config)).run())


if __name__ == "__main__":
    main()
