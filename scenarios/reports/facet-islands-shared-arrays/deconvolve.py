"""Deconvolution of the islands by a genetic algorithm; the best individual of each goes to the shared dictionary"""

import shutil
import sys
import time

import npshared
import numpy as np

ISLANDS, FACET, PIXELS, FACET_S = 95000, 300, 7, 0.075


class Facet:
    """The islands that are fitted together, and their point spread function"""

    def __init__(self, image, generator):
        self.image, self.generator = image, generator
        axis = np.exp(-np.linspace(-1.5, 1.5, PIXELS) ** 2).astype(np.float32)
        self.psf = np.outer(axis, axis)
        self.transfer = np.fft.rfft2(self.psf, (2 * PIXELS, 2 * PIXELS))

    def fit(self, centres, seconds):
        """As many generations as the time for one facet allows"""
        cutouts = np.stack([self.image[row : row + PIXELS, column : column + PIXELS] for row, column in centres])
        best = np.maximum(cutouts, 0)
        until, generations = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            mutated = best * self.generator.normal(1, 0.02, best.shape).astype(np.float32)
            spectrum = np.fft.rfft2(mutated, (2 * PIXELS, 2 * PIXELS)) * self.transfer
            model = np.fft.irfft2(spectrum)[:, 3 : 3 + PIXELS, 3 : 3 + PIXELS]
            better = np.abs(model - cutouts).sum((1, 2)) < np.abs(best - cutouts).sum((1, 2))
            best[better] = mutated[better]
            generations += 1
        return best, generations


def main():
    image = np.load(sys.argv[1])
    generator = np.random.default_rng(1)
    facet, solutions = Facet(image, generator), npshared.SharedDict("DeconvListIslands")
    started = time.monotonic()
    try:
        for first in range(0, ISLANDS, FACET):
            centres = generator.integers(0, image.shape[0] - PIXELS, (FACET, 2))
            best, generations = facet.fit(centres, FACET_S)
            for offset, individual in enumerate(best):
                shared = solutions.add_array(f"int:{first + offset}.BestIndiv", individual.shape)
                shared[:] = individual
            if first % 6000 == 0:
                seconds = time.monotonic() - started
                print(f"{len(solutions)} islands in {seconds:.0f} s, {generations} generations", flush=True)
    finally:
        shutil.rmtree(npshared.ROOT, ignore_errors=True)
    total = sum(float(solutions[name].sum()) for name in solutions.items)
    print(f"total flux {total:.1f}", flush=True)


if __name__ == "__main__":
    main()
