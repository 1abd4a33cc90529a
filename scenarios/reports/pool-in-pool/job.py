"""A transients pipeline: extracts the sources of the images of each time step, several images at a time."""

import multiprocessing

import numpy as np

TIMESTEPS = 14
IMAGES = 8


def observe(timestep, band, size=768):
    rng = np.random.default_rng(timestep * 100 + band)
    image = rng.normal(0, 1, (size, size))
    for _ in range(20 + (400 if timestep == 11 else 0)):
        x, y = rng.integers(8, size - 8, 2)
        image[x - 2 : x + 3, y - 2 : y + 3] += rng.uniform(20, 60)
    return image


def background(image):
    grid = np.array([[np.median(tile) for tile in np.hsplit(row, 24)] for row in np.vsplit(image, 24)])
    return np.kron(grid, np.ones((32, 32)))


def fit_gaussian(cutout):
    x, y = np.indices(cutout.shape)
    total = cutout.sum()
    return float((x * cutout).sum() / total), float((y * cutout).sum() / total), float(total)


def extract_sources(task):
    timestep, band = task
    image = observe(timestep, band)
    for _ in range(16):
        image = image - background(image)
    peaks = np.argwhere((image > 15) & (image == np.maximum(image, np.roll(image, 1, 0))))
    cutouts = [np.abs(image[max(0, x - 3) : x + 4, max(0, y - 3) : y + 4]) for x, y in peaks]
    if len(cutouts) > 3000:  # a crowded field: the fits are worth a pool
        with multiprocessing.Pool(2) as pool:
            return pool.map(fit_gaussian, cutouts)
    return [fit_gaussian(cutout) for cutout in cutouts]


def main():
    with multiprocessing.Pool(2) as pool:
        for timestep in range(TIMESTEPS):
            sources = pool.map(extract_sources, [(timestep, band) for band in range(IMAGES)])
            counts = [len(found) for found in sources]
            print(f"timestep {timestep}: sources {counts}", flush=True)


if __name__ == "__main__":
    main()
