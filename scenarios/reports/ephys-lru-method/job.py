"""Features of patch-clamp recordings: a data set a file, whose sweeps are read by a method with an LRU cache."""

import functools
import sys

import numpy as np

FILES = 42
SWEEPS = 12
POINTS = 40_000


class LabNotebookReader:
    """The settings of the amplifier, numeric and textual, a row for each change."""

    def __init__(self, rng):
        self.colname_number = {name: n for n, name in enumerate(("SweepNum", "TimeStamp", "V-Clamp", "I-Clamp"))}
        self.val_number = rng.standard_normal((1200, 9, 128))
        self.val_text = rng.integers(32, 127, (1200, 9, 256), np.uint8)

    def get_value(self, name, sweep):
        return float(self.val_number[sweep, 0, self.colname_number[name]])


class EphysNWBData:
    def __init__(self, number):
        self.rng = np.random.default_rng(number)
        self.notebook = LabNotebookReader(self.rng)

    @functools.lru_cache(maxsize=None)
    def _get_series(self, sweep):
        stimulus = np.zeros(POINTS, np.float32)
        stimulus[POINTS // 4 : POINTS // 2] = 20 * sweep
        return stimulus, self.rng.standard_normal(POINTS, np.float32).cumsum() + stimulus

    def get_sweep_data(self, sweep):
        stimulus, response = self._get_series(sweep)
        return stimulus, response, self.notebook.get_value("I-Clamp", sweep)


def bessel(response):
    kernel = np.hanning(401)
    return np.convolve(response, kernel / kernel.sum(), "same")


def extract_features(data_set):
    spikes, rest = 0, []
    for sweep in range(SWEEPS):
        _, response, hold = data_set.get_sweep_data(sweep)
        for _ in range(14):
            response = bessel(response)
        slope = np.gradient(response)
        spikes += int((np.diff((slope > slope.std()).astype(np.int8)) > 0).sum())
        _, again, _ = data_set.get_sweep_data(sweep)
        rest.append(float(again[: POINTS // 5].mean()) + hold)
    return spikes, float(np.mean(rest))


def main():
    for number in range(FILES):
        data_set = EphysNWBData(number)
        spikes, rest = extract_features(data_set)
        print(f"cell {number}: {spikes} spikes, rest {rest:.1f} mV", flush=True)
        del data_set
    return 0


if __name__ == "__main__":
    sys.exit(main())
