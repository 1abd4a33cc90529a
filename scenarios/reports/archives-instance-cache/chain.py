"""Receives segments of satellite images as tar files, and makes products of them"""

import io
import os
import tarfile
import tempfile
import time

import numpy as np

from archives import filesystem

SECONDS, SEGMENT_S = 90.0, 0.6
BANDS, LINES, PIXELS = ["VIS006", "IR_039", "IR_108", "IR_120"], 928, 1024


def receive(folder, number, generator):
    """Writes a segment as the reception does; its path"""
    path = os.path.join(folder, f"segment-{number:05d}.tar")
    with tarfile.open(path, "w") as tar:
        for band in BANDS:
            counts = generator.integers(0, 1024, (LINES, PIXELS), np.uint16)
            info = tarfile.TarInfo(f"{band}.raw")
            info.size = counts.nbytes
            tar.addfile(info, io.BytesIO(counts.tobytes()))
    return path


def read(path):
    """The counts of all bands of a segment"""
    fs = filesystem("tar", fo=path)
    bands = {}
    for name in fs.find():
        with fs.open(name) as file:
            bands[name.removesuffix(".raw")] = np.frombuffer(file.read(), np.uint16).reshape(LINES, PIXELS)
    del fs
    return bands


def cloud_mask(bands, until):
    """The share of cloudy pixels, from temperatures that are smoothed for the time of a segment"""
    temperature = 180.0 + 0.13 * bands["IR_108"].astype(np.float32)
    difference = temperature - (180.0 + 0.13 * bands["IR_120"].astype(np.float32))
    while time.monotonic() < until:
        temperature[1:-1] += 0.2 * (temperature[:-2] + temperature[2:] - 2.0 * temperature[1:-1])
        difference[:, 1:-1] += 0.2 * (difference[:, :-2] + difference[:, 2:] - 2.0 * difference[:, 1:-1])
    bright = bands["VIS006"] > 400
    return float(((temperature < 245.0) & bright | (difference > 6.0)).mean())


def main():
    generator = np.random.default_rng(0)
    started, number = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="reception-", dir="/dev/shm") as folder:
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + SEGMENT_S
            path = receive(folder, number, generator)
            share = cloud_mask(read(path), until)
            os.remove(path)
            number += 1
            if number % 8 == 0:
                print(f"segment {number}: {share:.3f} cloudy", flush=True)
    print(f"{number} segments", flush=True)


if __name__ == "__main__":
    main()
