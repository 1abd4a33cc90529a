"""Reads blocks from standard input, and fits a line through the last rows of all of them"""

import argparse
import struct
import sys
import zlib

import numpy as np

HEADER = struct.Struct("<III")


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{size} bytes expected, {len(data)} read")
    return data


def blocks(stream, channels):
    while header := stream.read(HEADER.size):
        number, rows, size = HEADER.unpack(header)
        samples = np.frombuffer(zlib.decompress(read_exactly(stream, size)))
        yield number, samples.reshape(rows, channels)


def standardise(samples):
    centred = samples - samples.mean(0)
    return centred / (centred.std(0) + 1e-9)


def spectrum_peak(samples):
    power = np.abs(np.fft.rfft(samples, axis=0)) ** 2
    return int(power[1:].sum(1).argmax()) + 1


class Baseline:
    def __init__(self):
        self.rows = []

    def add(self, samples):
        self.rows.append(samples[-1])

    def fit(self):
        rows = np.stack(self.rows)
        design = np.column_stack([np.arange(len(rows)), np.ones(len(rows))])
        return np.linalg.lstsq(design, rows, rcond=None)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--channels", type=int, default=40)
    channels = parser.parse_args().channels
    baseline = Baseline()
    for number, samples in blocks(sys.stdin.buffer, channels):
        samples = standardise(samples)
        baseline.add(samples)
        if number % 50 == 0:
            print(f"block {number}: peak at {spectrum_peak(samples)}", flush=True)
    slope, offset = baseline.fit()
    print(f"{len(baseline.rows)} blocks, slope {slope.mean():.5f}, offset {offset.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
