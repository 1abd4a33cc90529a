"""Scatter and gather: sends the global model to the sites of a round, and averages what they send back"""

import argparse
import functools
import json
import pickle
import socket

import numpy as np

FEATURES, HIDDEN, CLASSES = 64, 3000, 10
SITES_OF_ROUNDS = [5, 5, 5, 13, 13, 13]


def initial_model():
    generator = np.random.default_rng(5)
    shapes = {
        "0.weight": (HIDDEN, FEATURES),
        "0.bias": (HIDDEN,),
        "2.weight": (HIDDEN, HIDDEN),
        "2.bias": (HIDDEN,),
        "4.weight": (CLASSES, HIDDEN),
        "4.bias": (CLASSES,),
    }
    return {
        name: generator.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[-1]))
        for name, shape in shapes.items()
    }


class Communicator:
    def __init__(self, connection):
        self.connection = connection
        self.incoming = connection.makefile("rb")

    def train(self, number, site, task):
        head = {"round": number, "site": site, "bytes": len(task)}
        self.connection.sendall(json.dumps(head).encode() + b"\n")
        self.connection.sendall(task)
        answer = json.loads(self.incoming.readline())
        weights = pickle.loads(self.incoming.read(answer["bytes"]))
        print(f"round {number}: got result from client site-{site}", flush=True)
        return weights, answer["samples"]


def aggregate(results):
    total = sum(samples for _, samples in results)
    weighted = [
        {name: value * (samples / total) for name, value in weights.items()} for weights, samples in results
    ]
    return {name: functools.reduce(np.add, [weights[name] for weights in weighted]) for name in weighted[0]}


class ScatterAndGather:
    def __init__(self, communicator):
        self.communicator = communicator
        self.model = initial_model()

    def run(self):
        for number, sites in enumerate(SITES_OF_ROUNDS):
            print(f"Round {number} started.", flush=True)
            self.model = self.round(number, sites)
            norm = float(np.abs(self.model["2.weight"]).mean())
            print(f"Round {number} finished: mean weight {norm:.5f}", flush=True)

    def round(self, number, sites):
        task = pickle.dumps(self.model, protocol=5)
        results = [self.communicator.train(number, site, task) for site in range(sites)]
        return aggregate(results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--announce", required=True)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    with open(options.announce, "w") as file:
        print(listener.getsockname()[1], file=file)
    connection, _ = listener.accept()
    with connection:
        ScatterAndGather(Communicator(connection)).run()


if __name__ == "__main__":
    main()
