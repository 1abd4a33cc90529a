"""Some samples are bad; their exceptions are kept for a summary, or the text of them."""

import sys
import time
import traceback

import torch


def decode(index):
    image = torch.full((1 << 18,), float(index))
    raise ValueError(f"sample {index} of mean {image.mean()} is bad")


def read(way, steps):
    failed = []
    for index in range(steps):
        try:
            decode(index)
        except ValueError as error:
            failed.append(error if way == "exception" else traceback.format_exc())
        time.sleep(0.05)


read(sys.argv[1], int(sys.argv[2]))
