"""Write a training set as one file of pages: images of a fixed size, with their labels in front."""

import sys

import numpy as np

PAGES, PER_PAGE, SIDE = 60, 162, 128

with open(sys.argv[1], "wb") as file:
    rng = np.random.default_rng(0)
    page = rng.integers(0, 256, (PER_PAGE, 1 + SIDE * SIDE * 3), dtype=np.uint8)
    for number in range(PAGES):
        page[:, 0] = rng.integers(0, 100, PER_PAGE)
        page[:, 1:] += np.uint8(number)
        file.write(page.tobytes())
