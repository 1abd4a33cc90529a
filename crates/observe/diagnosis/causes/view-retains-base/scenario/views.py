"""Keeps one row of each batch: as a view of the batch, or copied into a table made before.

No copies of their own: small blocks between large ones split glibc's heap in most runs, which then grows as if nothing had
been freed.
"""

import sys
import time

import numpy
import torch


def collect(way, steps):
    kept = []
    table = torch.empty(steps, 512) if way == "table" else None
    for step in range(steps):
        batch = torch.randn(512, 512)
        if way == "view":
            kept.append(batch[0])
        elif way == "array":
            kept.append(numpy.ones((512, 512), numpy.float32)[0])
        else:
            table[step] = batch[0]
        time.sleep(0.05)


collect(sys.argv[1], int(sys.argv[2]))
