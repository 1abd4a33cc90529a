"""A driver calls an actor many times; each result is a tensor in the object store, which is released after use"""

import multiprocessing
import sys
import time

import torch
from store import ObjectStore

torch.set_num_threads(1)
ARENA, ROWS, COLUMNS = 256 << 20, 384, 1024


class TensorActor:
    """Projects a batch of random features"""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(1)
        self.weight = torch.randn(COLUMNS, COLUMNS, generator=self.generator) / COLUMNS**0.5

    def get(self, number):
        features = torch.randn(ROWS, COLUMNS, generator=self.generator)
        return torch.tanh(features @ self.weight) + number % 7


def actor_loop(store, calls):
    actor = TensorActor()
    while (number := calls.recv()) is not None:
        calls.send(store.put(actor.get(number)))


class Driver:
    def __init__(self):
        self.store = ObjectStore(ARENA)
        self.calls, theirs = multiprocessing.Pipe()
        self.actor = multiprocessing.Process(target=actor_loop, args=(self.store, theirs), name="ray::TensorActor")
        self.actor.start()
        theirs.close()
        self.mean = torch.zeros(COLUMNS)

    def call(self, number):
        self.calls.send(number)
        value = self.store.get(self.calls.recv())
        covariance = value.T @ value / ROWS
        self.mean = 0.99 * self.mean + 0.01 * covariance.diagonal()

    def shutdown(self):
        self.calls.send(None)
        self.actor.join()
        return self.actor.exitcode


def main():
    driver, until, number = Driver(), time.monotonic() + 30, 0
    while time.monotonic() < until:
        driver.call(number)
        number += 1
        if number % 100 == 0:
            print(f"{number} calls, mean {driver.mean.mean().item():.4f}", flush=True)
    print("done!", flush=True)
    sys.exit(driver.shutdown())


if __name__ == "__main__":
    main()
