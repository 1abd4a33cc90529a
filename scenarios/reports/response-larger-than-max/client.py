"""Segments scans: parts of some first, to see that the network works, and then a whole one"""

import sys
import time

import numpy as np

from channel import Channel

PARTS_S, SIDE, SLICES = 24.0, 64, 120


def scan(number, slices):
    """A body in noise"""
    generator = np.random.default_rng(number)
    rows, columns = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    inside = rows**2 + columns**2 < 0.3 + 0.2 * np.sin(np.arange(slices) / 9.0)[:, None, None]
    return (inside + 0.3 * generator.standard_normal((slices, SIDE, SIDE)))[:, None].astype(np.float32)


def segment(channel, number, slices):
    channel.send({"id": number, "model": "lungmask"}, scan(number, slices))
    described, scores = channel.receive()
    return described["id"], scores.argmax(1)


def main():
    channel = Channel.connect(int(sys.argv[1]))
    started, number = time.monotonic(), 0
    while time.monotonic() - started < PARTS_S:
        number, labels = segment(channel, number + 1, 24 + 8 * (number % 6))
        if number % 20 == 0:
            print(f"part {number}: {len(labels)} slices, {(labels > 0).mean():.3f} of them is something", flush=True)
    number, labels = segment(channel, number + 1, SLICES)
    print(f"scan {number}: {len(labels)} slices, {(labels > 0).mean():.3f} of them is something", flush=True)


if __name__ == "__main__":
    main()
