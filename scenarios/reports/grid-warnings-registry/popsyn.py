"""Evolves a population of binary stars in two processes, and sums up what they became"""

import collections
import multiprocessing
import os
import sys
import time
import warnings

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import evolve  # noqa: E402

SECONDS = 27.0
BINARIES = 60_000


class Summary:
    """Counts warnings by category, where the terminal would be flooded"""

    def __init__(self):
        self.counts = collections.Counter()

    def show(self, message, category, filename, lineno, file=None, line=None):
        self.counts[category.__name__] += 1


def worker(number, results):
    summary = Summary()
    warnings.showwarning = summary.show
    rng = np.random.default_rng(number)
    grid = evolve.Grid()
    population = evolve.draw(rng, BINARIES)
    started, step = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        step += 1
        merged = evolve.advance(population, grid, rng, step)
        if merged.any():
            fresh = evolve.draw(rng, int(merged.sum()))
            for name, values in fresh.items():
                population[name][merged] = values
        if step % 250 == 0:
            print(f"process {number}, step {step}: {dict(summary.counts)}", flush=True)
    results.put((number, step, dict(summary.counts), float(np.median(population["period"]))))


def main():
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=worker, args=(number, results)) for number in range(2)]
    for process in processes:
        process.start()
    for _ in processes:
        number, steps, counts, period = results.get()
        print(f"process {number}: {steps} steps, median period {period:.3f} d, warnings {counts}", flush=True)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
