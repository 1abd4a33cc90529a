"""Each evaluation step draws a figure, saves it, and does not close it."""

import io
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
CLOSE = "close" in sys.argv


def plot_sample(image):
    fig, axes = plt.subplots(1, 2, figsize=(4, 2))
    for ax in axes:
        ax.imshow(image)
        ax.axis("off")
    fig.savefig(io.BytesIO(), format="png")
    if CLOSE:
        plt.close(fig)


def main():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        plot_sample(np.random.rand(512, 256))
        time.sleep(0.02)


main()
