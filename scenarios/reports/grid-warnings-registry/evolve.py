"""Steps of binaries along a grid of tracks"""

import warnings

import numpy as np


class InterpolationWarning(UserWarning):
    """A binary lies outside of the grid"""


class Grid:
    def __init__(self):
        self.mass = np.geomspace(1, 120, 400)
        self.radius = self.mass**0.6 * (1 + 0.1 * np.sin(self.mass))
        self.highest = 5.9


def draw(rng, count):
    m1 = 1.0 + 119 * rng.power(0.35, count)
    return {"m1": m1, "m2": m1 * rng.uniform(0.1, 1.0, count), "period": 10 ** rng.uniform(-0.3, 3.5, count)}


def separation(m1, m2, period):
    return 4.2 * np.cbrt((m1 + m2) * period**2)


def advance(population, grid, rng, step):
    """One step of mass transfer; which of the binaries merged"""
    m1, m2, period = population["m1"], population["m2"], population["period"]
    distance = separation(m1, m2, period)
    ratio = np.clip(m1 / m2, 0.1, 20)
    lobe = distance * 0.49 * ratio ** (2 / 3) / (0.6 * ratio ** (2 / 3) + np.log1p(np.cbrt(ratio)))
    filling = np.interp(m1, grid.mass, grid.radius) / lobe
    rate = rng.exponential(size=len(m1))
    for index in np.flatnonzero(rate > grid.highest):
        warnings.warn(
            f"binary {index} at step {step}: log of the mass transfer rate {-4 - rate[index]:.9f} is outside of the "
            f"grid for m1={m1[index]:.9f} Msun, m2={m2[index]:.9f} Msun, P={period[index]:.9f} d, filling factor "
            f"{filling[index]:.9f}; extrapolating from the nearest neighbour of the last converged track",
            InterpolationWarning,
            stacklevel=1,
        )
    lost = np.minimum(rate, grid.highest) * 1e-3 * np.minimum(filling, 1.0)
    m1 -= np.minimum(lost, 0.01 * m1)
    m2 += 0.5 * np.minimum(lost, 0.01 * m1)
    period *= np.exp(rng.normal(0, 2e-3, len(m1)) - 1e-4)
    rank = np.argsort(distance)
    merged = np.zeros(len(m1), dtype=bool)
    merged[rank[: len(m1) // 500]] = True
    return merged | (m1 < 0.9)
