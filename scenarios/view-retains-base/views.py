"""Keeps one row of each batch: as a view of the batch, or as a copy."""

import sys
import time

import numpy
import torch


def collect(way, steps):
    kept = []
    for _ in range(steps):
        batch = torch.randn(512, 512)
        if way == "view":
            kept.append(batch[0])
        elif way == "array":
            kept.append(numpy.ones((512, 512), numpy.float32)[0])
        else:
            kept.append(batch[0].clone())
        time.sleep(0.05)


collect(sys.argv[1], int(sys.argv[2]))
