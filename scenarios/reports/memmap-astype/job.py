"""Statistics of a long recording, an array file that is mapped: once as it is, once in double precision."""

import os
import tempfile

import numpy as np

TIMESTEPS, CHANNELS = 20_000, 8_000


def record(path):
    """Writes the recording part by part."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(TIMESTEPS, CHANNELS))
    part = np.random.default_rng(0).normal(size=(250, CHANNELS)).astype(np.float32)
    for start in range(0, TIMESTEPS, len(part)):
        array[start : start + len(part)] = np.roll(part, start, axis=1)
    array.flush()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test.npy")
        record(path)
        data = np.load(path, mmap_mode="r")
        print(f"{data.nbytes} bytes in {path}", flush=True)
        shapes = {row.shape for row in data}
        spread = np.zeros(CHANNELS)
        for number, row in enumerate(data):
            converted = row.astype(np.float64)
            spread += np.abs(np.fft.irfft(np.fft.rfft(converted) * 0.5, n=CHANNELS)) + np.sort(converted)
            if number % 2500 == 0:
                print(f"row {number} of {shapes}: {spread.mean() / (number + 1):.4f}", flush=True)
        del data, row


if __name__ == "__main__":
    main()
