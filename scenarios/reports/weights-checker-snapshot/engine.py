"""A rank of the rollout engine: half of each layer; generates, takes new weights in buckets, and checks them"""

import sys
import time
from multiprocessing.connection import Listener

import numpy as np
from layout import LAYERS, WIDTH, initial_half
from weight_checker import WeightChecker


class Engine:
    def __init__(self, rank):
        self.model = {f"layers.{number}": initial_half(number, rank) for number in range(LAYERS)}
        self.checker = WeightChecker(self.model)

    def update(self, name, start, data):
        rows = np.frombuffer(data, np.float32).reshape(-1, WIDTH)
        self.model[name][start : start + len(rows)] = rows

    def generate(self, seconds):
        hidden, until, steps = np.ones((WIDTH, 2), np.float32), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            for weight in self.model.values():
                hidden = hidden + np.tanh(weight @ hidden)
            hidden /= np.linalg.norm(hidden, axis=0)
            steps += 1
        return steps


def main():
    engine = Engine(int(sys.argv[1]))
    with Listener(sys.argv[2], "AF_UNIX") as listener, listener.accept() as trainer:
        while True:
            request = trainer.recv()
            if request[0] == "update":
                engine.update(request[1], request[2], trainer.recv_bytes())
            elif request[0] == "check":
                engine.checker.handle(request[1])
                trainer.send("ok")
            elif request[0] == "generate":
                trainer.send(engine.generate(request[1]))
            else:
                break


if __name__ == "__main__":
    main()
