"""Reads samples, and keeps what it has decoded: in a dict of the dataset, or as a cached function does."""

import functools
import sys
import time

import numpy


@functools.cache
def decoded(index):
    return numpy.full(1 << 17, index % 255, numpy.uint8)


@functools.lru_cache(maxsize=64)
def decoded_bounded(index):
    return numpy.full(1 << 17, index % 255, numpy.uint8)


class Samples:
    def __init__(self):
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = numpy.full(1 << 17, index % 255, numpy.uint8)
        return self.cache[index]


def read(way, steps):
    samples = Samples()
    for step in range(steps):
        for number in range(8):
            index = 8 * step + number
            if way == "dict":
                samples[index]
            elif way == "seen":  # each sample again and again: the cache is full after the first epoch
                samples[index % 640]
            elif way == "lru":
                decoded(index)
            else:
                decoded_bounded(index)
        time.sleep(0.05)


read(sys.argv[1], int(sys.argv[2]))
