"""Each step leaves a circle that holds a tensor; the collector is off, waits for very many objects, or is asked."""

import gc
import sys
import time

import torch


class Node:
    def __init__(self, batch):
        self.batch = batch
        self.again = lambda: self.batch.sum()


def train(way, steps):
    if way == "threshold":
        gc.set_threshold(100_000)
    elif way != "on":
        gc.disable()
    for step in range(steps):
        batch = torch.randn(1 << 18)
        if way == "no-circle":
            batch.sum()
        else:
            Node(batch).again()
        if way == "asked" and step % 40 == 0:
            gc.collect()
        time.sleep(0.05)


train(sys.argv[1], int(sys.argv[2]))
