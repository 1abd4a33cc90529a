"""Writes the frames of a flight over a scene, and the position of the camera at each."""

import json
import os
import sys

import numpy as np

FRAMES, HEIGHT, WIDTH = 260, 270, 480


def main():
    folder = sys.argv[1]
    rng = np.random.default_rng(0)
    ground = rng.integers(0, 255, (HEIGHT // 6, WIDTH // 6 + FRAMES, 3), np.uint8)
    cameras = []
    for n in range(FRAMES):
        view = np.repeat(np.repeat(ground[:, n : n + WIDTH // 6], 6, 0), 6, 1)
        np.save(os.path.join(folder, f"{n:05d}.npy"), view)
        cameras.append({"image": f"{n:05d}.npy", "position": [n / FRAMES, 0.0, 1.0]})
    with open(os.path.join(folder, "cameras.json"), "w") as file:
        json.dump(cameras, file)


if __name__ == "__main__":
    main()
