"""Predictions of a whole array in batches of patches"""

import itertools
import time

import torch

MAXIMAL_BATCH_SIZE = 32


def find_batch_size(model, patch):
    """The largest batch size that fits into memory"""
    actual = 1
    with torch.no_grad():
        for batch_size in (1, 2, 4, 8, 16, 32):
            try:
                x = torch.randn((batch_size, 1) + patch)
                _ = model(x)
            except RuntimeError as error:
                if "out of memory" in str(error) or "can't allocate memory" in str(error):
                    break
                raise
            del x, _
            actual = batch_size
            print(f"  a batch of {batch_size} fits", flush=True)
    return min(actual, MAXIMAL_BATCH_SIZE)


class ArrayPredictor:
    def __init__(self, model, patch):
        self.model, self.patch = model, patch
        self.batch_size = find_batch_size(model, patch)
        print(f"  batch size {self.batch_size}", flush=True)

    def slices(self, shape):
        starts = [range(0, size - side + 1, side) for size, side in zip(shape, self.patch)]
        for corner in itertools.product(*starts):
            yield tuple(slice(start, start + side) for start, side in zip(corner, self.patch))

    def predict(self, stack, end):
        boundaries = torch.zeros_like(stack)
        places = list(self.slices(stack.shape))
        with torch.no_grad():
            for first in range(0, len(places), self.batch_size):
                batch = places[first : first + self.batch_size]
                outputs = self.model(torch.stack([stack[place] for place in batch])[:, None])
                for place, output in zip(batch, outputs[:, 0]):
                    boundaries[place] = output
                if time.monotonic() > end:
                    break
        return boundaries
