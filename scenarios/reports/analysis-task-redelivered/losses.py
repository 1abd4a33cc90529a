"""The losses of a portfolio's chunk: samples of each event in each region, and a table of all of them"""

import time

import numpy as np

EVENTS, SAMPLES = 2000, 1000
REGION_S = 0.06


def region_losses(generator, region):
    hazard = generator.random((EVENTS, 1))
    table = np.empty((EVENTS, SAMPLES))
    started, first = time.monotonic(), True
    while first or time.monotonic() - started < REGION_S:
        np.multiply(hazard, generator.random((1, SAMPLES)), out=table)
        np.power(table, 1.0 + 0.01 * region, out=table)
        first = False
    return table


def generate(chunk, regions):
    generator = np.random.default_rng(chunk)
    tables = [region_losses(generator, region) for region in range(regions)]
    total = np.zeros(EVENTS)
    for table in tables:
        total += table.mean(1)
    worst = np.sort(total)[-20:]
    return {"average": float(total.mean()), "return_period": float(worst.mean())}
