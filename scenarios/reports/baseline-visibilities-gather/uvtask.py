"""What an interferometer measures: one task for a baseline, a time and a channel"""

import numpy as np

C = 299792458.0


class UVTask:
    __slots__ = ("baseline", "frequency", "index", "time", "uvw", "visibility")

    def __init__(self, index, baseline, uvw, time, frequency):
        self.index, self.baseline, self.uvw = index, baseline, uvw
        self.time, self.frequency, self.visibility = time, frequency, None

    def __getstate__(self):
        return self.index, self.baseline, self.uvw, self.time, self.frequency, self.visibility

    def __setstate__(self, state):
        self.index, self.baseline, self.uvw, self.time, self.frequency, self.visibility = state


class Telescope:
    def __init__(self, antennas, sources, seed):
        source = np.random.default_rng(seed)
        self.positions = source.normal(0.0, 120.0, (antennas, 3))
        self.pairs = [(one, two) for one in range(antennas) for two in range(one, antennas)]
        self.directions = source.normal(size=(sources, 3))
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)
        self.coherency = source.exponential(1.0, (sources, 4)) + 0j

    def make(self, number, channels, times):
        """The task of a number in the order of baselines, times and channels"""
        pair, rest = divmod(number, channels * times)
        time, channel = divmod(rest, channels)
        one, two = self.pairs[pair % len(self.pairs)]
        uvw = self.positions[two] - self.positions[one]
        return UVTask((number, time, channel), (one, two), uvw, 2458000.5 + time / 8640, 1e8 + 97656.25 * channel)

    def compute(self, tasks):
        uvw = np.array([task.uvw for task in tasks])
        waves = np.array([task.frequency for task in tasks])[:, None] / C
        fringe = np.exp(2j * np.pi * waves * (uvw @ self.directions.T))
        for task, visibility in zip(tasks, fringe @ self.coherency):
            task.visibility = visibility.copy()
