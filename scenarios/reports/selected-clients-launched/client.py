"""A client: loads the data source, partitions it, and trains on its part when the server asks for it"""

import argparse
import pickle
import socket
import time

import numpy as np
import torch

torch.set_num_threads(1)
SAMPLES, FEATURES, CLASSES = 100_000, 640, 10
PART = 4_000
TRAIN_S = 5.0
CHUNK = 10_000


class DataSource:
    def __init__(self):
        generator = np.random.default_rng(0)
        self.features = np.empty((SAMPLES, FEATURES), dtype=np.float32)
        for start in range(0, SAMPLES, CHUNK):
            block = generator.standard_normal((CHUNK, FEATURES), dtype=np.float32)
            self.features[start : start + CHUNK] = (block - block.mean(0)) / block.std(0)
        self.labels = self.features[:, :CLASSES].argmax(1)


def exchange(network, weights):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))


def train(network, source, part, number):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    generator = np.random.default_rng(number)
    end, right, seen = time.monotonic() + TRAIN_S, 0, 0
    while time.monotonic() < end:
        rows = generator.choice(part, 64)
        labels = torch.from_numpy(source.labels[rows])
        logits = network(torch.from_numpy(source.features[rows]))
        loss = torch.nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((logits.argmax(1) == labels).sum())
        seen += len(rows)
    return right / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    connection = socket.create_connection(("127.0.0.1", options.port))
    incoming = connection.makefile("rb")
    source = DataSource()
    part = np.random.default_rng(options.id).choice(SAMPLES, PART, replace=False)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(FEATURES, 256), torch.nn.ReLU(), torch.nn.Linear(256, CLASSES))
    print(f"[Client #{options.id}] {PART} of {SAMPLES} samples", flush=True)
    while len(head := incoming.read(8)) == 8:
        request = pickle.loads(incoming.read(int.from_bytes(head, "big")))
        if request["weights"] is not None:
            exchange(network, request["weights"])
        accuracy = train(network, source, part, request["round"])
        weights = {name: parameter.detach().numpy().copy() for name, parameter in network.named_parameters()}
        report = pickle.dumps({"weights": weights, "accuracy": accuracy}, protocol=5)
        connection.sendall(len(report).to_bytes(8, "big") + report)


if __name__ == "__main__":
    main()
