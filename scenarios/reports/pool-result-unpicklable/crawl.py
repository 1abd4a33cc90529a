"""Crawls a tree of catalogs with a pool, one level after the other."""

import socket
from multiprocessing import Pool

import numpy as np

LEVELS = 13
BROKEN = "level11/catalog31"


class LeafDataset:
    def __init__(self, name, variables, response=None):
        self.name = name
        self.variables = variables
        self.response = response


def parse(url):
    """The catalog's coverage, from the coordinates of its data sets."""
    rng = np.random.default_rng(abs(hash(url)) % 2**32)
    found = []
    for number in range(6):
        grid = rng.standard_normal((340, 340)).cumsum(0).cumsum(1)
        spectrum = np.abs(np.fft.fft2(grid))[:20, :20]
        found.append(LeafDataset(f"{url}/{number}.nc", {"spectrum": spectrum, "range": (grid.min(), grid.max())}))
    return found


def make_leaf(url):
    leaves = parse(url)
    if url == BROKEN:
        # The server redirects; the response is kept to be read again.
        leaves[0].response = socket.socketpair()[0].makefile("rb")
    return leaves


def main():
    datasets = 0
    with Pool(2) as pool:
        for level in range(LEVELS):
            urls = [f"level{level}/catalog{number}" for number in range(48)]
            jobs = pool.map(make_leaf, urls, chunksize=4)
            datasets += sum(len(leaves) for leaves in jobs)
            print(f"level {level}: {datasets} data sets so far", flush=True)


if __name__ == "__main__":
    main()
