"""A loop of NumPy calls keeps the head of each array."""

import sys
import time

import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


def main():
    end = time.monotonic() + SECONDS
    lst = []
    while time.monotonic() < end:
        a = np.random.rand(1_000_000)
        np.sort(a)
        np.sort(a)
        lst.append(a[:10])


main()
