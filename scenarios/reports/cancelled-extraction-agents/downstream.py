"""Fits a model of attention over the features of earlier slides"""

import time

import numpy as np

SECONDS = 14.0


def main():
    generator = np.random.default_rng(1)
    bags = generator.standard_normal((24, 400, 256), dtype=np.float32)
    labels = np.arange(24) % 2
    attention, weight = np.zeros(256, np.float32), np.zeros(256, np.float32)
    end, epoch = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for bag, label in zip(bags, labels):
            score = np.exp(np.clip(bag @ attention, -20.0, 20.0))
            pooled = (score / score.sum()) @ bag
            error = 1.0 / (1.0 + np.exp(-float(pooled @ weight))) - label
            weight -= 0.01 * error * pooled
            attention -= 0.001 * error * weight
        epoch += 1
    print(f"{epoch} epochs, norm {np.linalg.norm(weight):.3f}", flush=True)


if __name__ == "__main__":
    main()
