"""Exports the series of points, and then the whole data set on a regular grid, as JSON"""

import json
import os
import sys
import time

import numpy as np

import labelled

NAMES = ("t2m", "d2m", "msl", "u10", "v10", "tp", "ssrd", "tcc")
TIMES, LAT, LON = 1080, 48, 64
POINTS_S = 19.0


def open_dataset():
    generator = np.random.default_rng(4)
    hours = np.arange(TIMES) * 2 * np.pi / 24
    arrays = []
    for number, name in enumerate(NAMES):
        pattern = generator.normal(0, 900, (1, LAT, LON)).astype(np.float32)
        noise = generator.normal(0, 300, (TIMES, LAT, LON)).astype(np.float32)
        packed = (np.sin(hours + number).astype(np.float32)[:, None, None] * pattern + noise).astype(np.int16)
        arrays.append(labelled.DataArray(name, ("time", "lat", "lon"), packed, 0.01, 10.0 * number))
    return labelled.Dataset(arrays)


def regridding():
    """Weights from each point of the model's grid to each point of the regular one"""
    parts = []
    for count in (LAT, LON):
        places = np.arange(count)
        part = np.exp(-((places[:, None] - places[None, :] - 0.4) ** 2) / 0.6).astype(np.float32)
        parts.append(part / part.sum(0, keepdims=True))
    return np.kron(parts[0], parts[1])


def harmonics(point):
    """Amplitudes of the daily cycle and its overtones, for each variable"""
    hours = np.arange(TIMES)[:, None] * 2 * np.pi / 24
    orders = np.arange(1, 13)[None, :]
    design = np.hstack([np.ones((TIMES, 1)), np.sin(hours * orders), np.cos(hours * orders)])
    found = {}
    for name, array in point.data_vars.items():
        coefficients = np.linalg.lstsq(design, array.values, rcond=None)[0]
        found[name] = np.hypot(coefficients[1:13], coefficients[13:]).tolist()
    return found


def write(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file)


def main(folder):
    generator = np.random.default_rng(7)
    dataset, points, started = open_dataset(), 0, time.monotonic()
    while time.monotonic() - started < POINTS_S:
        lat, lon = divmod(int(generator.integers(LAT * LON)), LON)
        point = dataset.isel(lat, lon)
        write(folder, "point.json", {"series": point.to_dict(), "harmonics": harmonics(point)})
        points += 1
        if points % 100 == 0:
            print(f"{points} points exported", flush=True)
    print(f"{points} points exported, now the whole data set", flush=True)
    regular = dataset.interp(regridding())
    write(folder, "dataset.json", regular.to_dict())
    print("data set exported", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
