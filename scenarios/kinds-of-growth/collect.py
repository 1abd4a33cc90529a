"""Garbage in cycles that only the collector frees, of small arrays or of large ones; then gc.collect(), and a rest.

    collect.py small|large

Prints what the collector found and what stayed resident.
"""

import gc
import sys
import time

import numpy


class Node:
    def __init__(self, size):
        self.data = numpy.ones(size // 8)
        self.me = self


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmRSS"))


def main():
    size = {"small": 20_000, "large": 8_000_000}[sys.argv[1]]
    gc.disable()
    pins, before = [], resident()
    for _ in range(60):
        for _ in range(max(1, 5_000_000 // size)):
            Node(size)
        # A small block now and then that outlives the rest, at the top of what was taken.
        pins.append(numpy.ones(100))
        time.sleep(0.1)
    grown = resident()
    found = gc.collect()
    print(f"{before} MiB, {grown} MiB; gc.collect() found {found} objects, and left {resident()} MiB", flush=True)
    time.sleep(15)


if __name__ == "__main__":
    main()
