"""The sites of the federation, one after the other: each trains the model that it gets on its own samples"""

import argparse
import json
import pickle
import socket
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
FEATURES, HIDDEN, CLASSES = 64, 3000, 10
TRAIN_S = 1.0


def load(network, weights):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))


def train(network, number, site):
    generator = torch.Generator().manual_seed(1000 * number + site)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    started, samples = time.monotonic(), 0
    while time.monotonic() - started < TRAIN_S:
        features = torch.randn(64, FEATURES, generator=generator)
        labels = features[:, :CLASSES].argmax(1)
        loss = torch.nn.functional.cross_entropy(network(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        samples += len(labels)
    return samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    network = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, CLASSES),
    )
    with socket.create_connection(("127.0.0.1", options.port)) as connection:
        incoming = connection.makefile("rb")
        while line := incoming.readline():
            task = json.loads(line)
            load(network, pickle.loads(incoming.read(task["bytes"])))
            samples = train(network, task["round"], task["site"])
            weights = {name: np.asarray(value.detach()) for name, value in network.named_parameters()}
            answer = pickle.dumps(weights, protocol=5)
            head = {"site": task["site"], "samples": samples, "bytes": len(answer)}
            connection.sendall(json.dumps(head).encode() + b"\n")
            connection.sendall(answer)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ConnectionError, EOFError) as error:
        sys.exit(f"the server is gone: {error}")
