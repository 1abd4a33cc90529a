"""The frames of a night, each a little shifted and turned"""

import os
import sys

import numpy as np

import fits

folder, frames = sys.argv[1], int(sys.argv[2])
generator = np.random.default_rng(5)
sky = generator.normal(100, 3, (256, 256)).astype(np.float32)
for x, y in generator.integers(20, 236, (60, 2)):
    yy, xx = np.mgrid[-4:5, -4:5]
    sky[y - 4 : y + 5, x - 4 : x + 5] += generator.uniform(200, 900) * np.exp(-(xx**2 + yy**2) / 5)
for number in range(frames):
    shifted = np.roll(sky, tuple(generator.integers(-6, 7, 2)), (0, 1))
    fits.write(os.path.join(folder, f"frame-{number:04d}.fits"), shifted + np.float32(number % 7))
