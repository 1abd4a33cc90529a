"""The same in a multiprocessing.Process and in a loader worker's position: main notices and exits 1."""

import multiprocessing
import sys


def train():
    raise KeyError("label")


if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=train)
    process.start()
    process.join()
    sys.exit(process.exitcode)
