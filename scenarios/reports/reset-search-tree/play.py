"""A rank that plays against itself, with the newest network, and sends its games to rank 0"""

import os
import sys
import time
from multiprocessing.connection import Client

import numpy as np
from search import Search, self_play

SECONDS, PLAYOUTS = 28.0, 3600


class Network:
    """The forward pass of what rank 0 trains"""

    def __init__(self, path):
        self.path, self.written = path, 0.0
        self.reload()

    def reload(self):
        if (written := os.stat(self.path).st_mtime) > self.written:
            self.written = written
            with np.load(self.path) as arrays:
                self.arrays = {name: arrays[name] for name in arrays.files}

    def __call__(self, features):
        arrays = self.arrays
        hidden = np.maximum(arrays["body.weight"] @ features + arrays["body.bias"], 0)
        logits = arrays["policy.weight"] @ hidden + arrays["policy.bias"]
        policy = np.exp(logits - logits.max())
        return policy / policy.sum(), float(np.tanh(arrays["value.weight"] @ hidden + arrays["value.bias"])[0])


def connected(address):
    until = time.monotonic() + 60
    while True:
        try:
            return Client(address, "AF_UNIX")
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            os.sched_yield()


def main():
    folder, rank = sys.argv[1], int(os.environ["RANK"])
    source = np.random.default_rng(rank)
    with connected(os.path.join(folder, "games")) as trainer:
        network = Network(os.path.join(folder, "network.npz"))
        search, games, end = Search(network, PLAYOUTS), 0, time.monotonic() + SECONDS
        while (game := self_play(search, source, lambda: time.monotonic() > end)) is not None:
            trainer.send(game)
            games += 1
            print(f"rank {rank}: game {games} with {len(game[0])} moves", flush=True)
            network.reload()
        trainer.send(None)


if __name__ == "__main__":
    main()
