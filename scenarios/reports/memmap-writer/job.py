"""Computes a cube of spectra plane by plane, into an array that is mapped from a file."""

import os
import tempfile

import numpy as np

PLANES, SIDE = 800, 370


def plane(number, rows, columns, lines):
    out = np.full((SIDE, SIDE), 1.2)
    for centre, width, strength in lines:
        out += strength * np.exp(-(((number - centre - 8 * np.sin(rows + columns)) / width) ** 2))
    return out


def main():
    rng = np.random.default_rng(3)
    rows, columns = np.meshgrid(np.linspace(0, 6, SIDE), np.linspace(0, 6, SIDE), indexing="ij")
    lines = [(rng.uniform(0, PLANES), rng.uniform(5, 40), rng.uniform(0.1, 3)) for _ in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test.np")
        array = np.memmap(path, shape=(PLANES, SIDE, SIDE), dtype=float, mode="write")
        for number in range(PLANES):
            array[number] = plane(number, rows, columns, lines)
            if number % 100 == 99:
                array.flush()
                print(f"{number + 1} planes, {array[number].max():.2f} at most", flush=True)
        spectrum = array[:, SIDE // 2, SIDE // 2]
        print("spectrum", spectrum.min(), spectrum.max())


if __name__ == "__main__":
    main()
