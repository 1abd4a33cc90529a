"""Distances of a network, asked for again and again: each call makes a Pool and never closes it."""

import math
import multiprocessing
import sys


class Network:
    def __init__(self, points):
        self.points = points
        self.used = []

    def full_distance_matrix(self, processes):
        pool = multiprocessing.Pool(processes=processes)
        self.used.append(pool)
        rows = pool.map(distances, [(self.points, at) for at in range(0, len(self.points), 100)])
        return [min(row) for row in rows]


def distances(task):
    points, at = task
    seen = [math.dist(points[at], other) for other in points for _ in range(80)]
    global LAST
    LAST = seen
    return seen[:100]


if __name__ == "__main__":
    network = Network([(n % 97 * 1.5, n % 89 * 0.5) for n in range(4000)])
    for turn in range(int(sys.argv[1]) if len(sys.argv) > 1 else 40):
        print(turn, sum(network.full_distance_matrix(3)), flush=True)
