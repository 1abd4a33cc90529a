"""Exports a large area chunk by chunk: each chunk in a spawned process that ends after it."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

CHUNKS = 60
PARCELS = 9_000
WORKERS = 2


def grid(random, corner):
    """A parcel's outline on a grid, as Python objects of a geometry library are."""
    sides = random.uniform(0, 30, (24, 2)).cumsum(0) + corner
    return {"outline": [tuple(point) for point in sides.tolist()], "bounds": (*sides.min(0), *sides.max(0))}


def area(outline):
    total = 0.0
    for (x, y), (u, v) in zip(outline, outline[1:] + outline[:1], strict=True):
        total += x * v - u * y
    return abs(total) / 2


def process_chunk(number):
    random = np.random.default_rng(number)
    parcels, rasters = [], []
    for at in range(PARCELS):
        parcels.append(grid(random, (at % 100 * 50.0, at // 100 * 50.0)))
        rasters.append(random.integers(0, 5, (80, 80), np.uint8))
    areas = np.array([area(parcel["outline"]) for parcel in parcels])
    shares = np.array([np.bincount(raster.ravel(), minlength=5) for raster in rasters]) / 6400
    return number, float(areas.sum()), shares.mean(0).round(3).tolist()


def main():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context, max_tasks_per_child=1) as executor:
        futures = [executor.submit(process_chunk, number) for number in range(CHUNKS)]
        for future in as_completed(futures):
            number, total, shares = future.result()
            print(f"chunk {number}: {total:.0f} square metres, {shares}", flush=True)


if __name__ == "__main__":
    main()
