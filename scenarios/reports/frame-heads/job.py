"""Of each table that was read, the first rows are kept for a report."""

import sys
import time

import numpy as np
import pandas as pd

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


def read(number):
    data = np.random.default_rng(number).normal(size=(40_000, 6))
    return pd.DataFrame(data, columns=list("abcdef"))


def main():
    end = time.monotonic() + SECONDS
    previews, number = {}, 0
    while time.monotonic() < end:
        frame = read(number)
        previews[f"part-{number:05d}"] = frame.iloc[:5]
        frame.describe()
        number += 1


main()
