"""Road maps on disk, and the cache of their geometry: points, a grid of points near each cell, and lanes"""

import os

import numpy as np

POINTS, CELLS, NEAR = 40_000, 180, 20


class RoadMap:
    def __init__(self, points):
        self.points = points
        self.origin, span = points[:, :2].min(0), np.ptp(points[:, :2], axis=0)
        self.cell = span / CELLS
        cells = np.minimum((points[:, :2] - self.origin) / self.cell, CELLS - 1).astype(np.int32)
        order = np.argsort(cells[:, 0] * CELLS + cells[:, 1], kind="stable")
        starts = np.searchsorted((cells[:, 0] * CELLS + cells[:, 1])[order], np.arange(CELLS * CELLS))
        wanted = np.minimum(starts[:, None] + np.arange(NEAR), len(points) - 1)
        self.near = order[wanted].reshape(CELLS, CELLS, NEAR).astype(np.int32)
        self.following = np.roll(np.arange(len(points), dtype=np.int32), -1)
        self.heading = np.arctan2(*(points[self.following, :2] - points[:, :2]).T).astype(np.float32)

    def around(self, place):
        row, column = np.clip((place - self.origin) / self.cell, 0, CELLS - 1).astype(int)
        return self.near[row, column]


def write_maps(folder, count):
    for number in range(count):
        random = np.random.default_rng(number)
        turns = np.cumsum(random.normal(0, 0.05, POINTS))
        path = np.cumsum(np.stack([np.cos(turns), np.sin(turns)], 1), axis=0)
        points = np.concatenate([path, turns[:, None], random.random((POINTS, 1))], 1)
        np.save(os.path.join(folder, f"map_{number:03}.npy"), points.astype(np.float32))


class MapCache:
    def __init__(self, folder):
        self.folder, self.maps = folder, {}

    def get(self, number):
        if number not in self.maps:
            self.maps[number] = RoadMap(np.load(os.path.join(self.folder, f"map_{number:03}.npy")))
        return self.maps[number]
