"""Potentials on a surface by iteration, with a report of every node"""

import sys
import time

import numpy as np

triangles = int(sys.argv[1])
nodes = triangles // 2 + 2
generator = np.random.default_rng(triangles)
points = generator.standard_normal((nodes, 3))
points /= np.linalg.norm(points, axis=1, keepdims=True)
potential = points[:, 2].copy()
started, iteration = time.monotonic(), 0
while time.monotonic() - started < 2.5:
    chunk = generator.integers(0, nodes, 64)
    distances = np.linalg.norm(points[chunk, None] - points[None], axis=2) + 0.1
    potential[chunk] = 0.5 * potential[chunk] + 0.5 * (potential / distances).sum(1) / (1 / distances).sum(1)
    iteration += 1
print(f"converged after {iteration} iterations")
for node in range(nodes):
    print(f"node {node} {potential[node]:.9e} angle {np.arccos(points[node, 2]):.9e}")
