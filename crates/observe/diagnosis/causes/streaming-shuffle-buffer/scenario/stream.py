"""An iterable dataset that shuffles decoded samples of 200 KB in a buffer (decoded), or their numbers (numbers)."""

import random
import sys
import time

import numpy
from torch.utils.data import DataLoader, IterableDataset


def decode(number):
    return numpy.full(200_000, number % 251, dtype=numpy.uint8)


def shuffled(samples, size):
    buffer = []
    for sample in samples:
        if len(buffer) < size:
            buffer.append(sample)
            if len(buffer) < 100:
                continue
        place = random.randrange(len(buffer))
        yield buffer[place]
        buffer[place] = sample


class Stream(IterableDataset):
    def __init__(self, kind, size):
        self.kind, self.size = kind, size

    def __iter__(self):
        numbers = iter(range(1_000_000))
        if self.kind == "decoded":
            yield from shuffled(map(decode, numbers), self.size)
        else:
            yield from map(decode, shuffled(numbers, self.size))


if __name__ == "__main__":
    kind, size, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    end, total = time.monotonic() + seconds, 0
    for batch in DataLoader(Stream(kind, size), batch_size=16, num_workers=2):
        total += len(batch)
        time.sleep(0.02)
        if time.monotonic() > end:
            break
    print(total)
