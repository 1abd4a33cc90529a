"""History matching: waves of simulations narrow down which parameters explain the observed epidemic"""

import multiprocessing
import time

import numpy as np
from simulation import Sim

SECONDS, SIM_S, WAVE, WORKERS = 26.0, 0.34, 16, 2
SIZES = {"people": 30_000, "edges": 330_000, "steps": 24}
BOUNDS = np.array([(0.01, 0.12), (3.0, 12.0)])
OBSERVED = {"peak": 9000.0, "day": 13.0}


def evaluate(task):
    """One simulation: the height and the day of its peak, and how sure they are"""
    (beta, duration), seed = task
    until = time.monotonic() + SIM_S
    sim = Sim({**SIZES, "beta": beta, "duration": duration}, seed).run()
    infected, spread = sim.curve.astype(float), []
    while time.monotonic() < until or not spread:
        drawn = sim.random.binomial(SIZES["people"], infected / SIZES["people"], (200, len(infected)))
        spread.append(drawn.max(1).std())
    return infected.max(), float(infected.argmax()), float(np.mean(spread))


def basis(points):
    scaled = (points - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])
    x, y = scaled.T
    return np.stack([np.ones_like(x), x, y, x * y, x**2, y**2], 1)


def next_wave(points, outcomes, random):
    """Draws parameters that the emulator of the simulations finds plausible"""
    drawn = BOUNDS[:, 0] + random.random((2000, 2)) * (BOUNDS[:, 1] - BOUNDS[:, 0])
    weights, *_ = np.linalg.lstsq(basis(points), outcomes[:, :2], rcond=None)
    distance = np.abs(basis(drawn) @ weights - [OBSERVED["peak"], OBSERVED["day"]]) / [2000.0, 3.0]
    return drawn[np.argsort(distance.max(1))[: 4 * WAVE]][random.permutation(4 * WAVE)[:WAVE]]


def main():
    random, begin, wave = np.random.default_rng(0), time.monotonic(), 0
    points = BOUNDS[:, 0] + random.random((WAVE, 2)) * (BOUNDS[:, 1] - BOUNDS[:, 0])
    with multiprocessing.Pool(WORKERS) as pool:
        while time.monotonic() - begin < SECONDS:
            seeds = range(wave * WAVE, (wave + 1) * WAVE)
            outcomes = np.array(pool.map(evaluate, list(zip(points.tolist(), seeds)), chunksize=1))
            best = np.abs(outcomes[:, 0] - OBSERVED["peak"]).argmin()
            wave += 1
            print(f"wave {wave}: beta {points[best, 0]:.3f} gives a peak of {outcomes[best, 0]:.0f}", flush=True)
            points = next_wave(points, outcomes, random)


if __name__ == "__main__":
    main()
