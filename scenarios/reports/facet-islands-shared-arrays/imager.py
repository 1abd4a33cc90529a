"""The dirty image of a simulated deep field"""

import sys

import numpy as np

generator = np.random.default_rng(7)
image = generator.standard_normal((1500, 1500)).astype(np.float32) * 0.01
rows, columns = generator.integers(8, 1492, (2, 4000))
fluxes = generator.pareto(1.5, 4000).astype(np.float32)
for row, column, flux in zip(rows, columns, fluxes):
    image[row - 2 : row + 3, column - 2 : column + 3] += flux
np.save(sys.argv[1], image)
print(f"peak flux {image.max():.2f}", flush=True)
