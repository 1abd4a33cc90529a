"""Denoises photographs with a dictionary of patches that is learned from each of them"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import parallel  # noqa: E402

N_JOBS, PATCH, STRIDE, ATOMS = 2, 8, 3, 96
PICTURE_S, CODE_S = 5.5, 0.5
SIDES = (96, 128, 160, 192, 256)


def photograph(side, generator):
    y, x = np.mgrid[:side, :side] / side
    clean = np.sin(9 * x + 4 * y) + (np.hypot(x - 0.5, y - 0.5) < 0.3)
    return clean + 0.2 * generator.standard_normal((side, side))


def extract_patches(image):
    windows = np.lib.stride_tricks.sliding_window_view(image, (PATCH, PATCH))[::STRIDE, ::STRIDE]
    return windows.reshape(-1, PATCH * PATCH)


def sparse_encode(patches, dictionary, penalty):
    """Codes of the patches, after their means are taken away, by iterations within a time"""
    patches[:] = patches - patches.mean(1, keepdims=True)
    gram, product = dictionary @ dictionary.T, patches @ dictionary.T
    step = 1 / np.linalg.norm(gram, 2)
    codes, until = np.zeros_like(product), time.monotonic() + CODE_S
    while time.monotonic() < until:
        codes -= step * (codes @ gram - product)
        codes = np.sign(codes) * np.maximum(np.abs(codes) - penalty * step, 0)
    return codes


def learn(jobs, image, generator):
    """A dictionary for one picture, and how much of it the codes explain"""
    patches = extract_patches(image)
    centred = patches - patches.mean(1, keepdims=True)
    dictionary = centred[generator.choice(len(patches), ATOMS, replace=False)]
    started = time.monotonic()
    while time.monotonic() - started < PICTURE_S:
        dictionary /= np.linalg.norm(dictionary, axis=1, keepdims=True) + 1e-9
        parts = np.array_split(patches, N_JOBS)
        codes = np.concatenate(jobs([(sparse_encode, part, dictionary, 0.1) for part in parts]))
        rest = centred - codes @ dictionary
        dictionary = np.linalg.lstsq(codes.T @ codes + 1e-3 * np.eye(ATOMS), codes.T @ centred, rcond=None)[0]
    return 1 - rest.var() / centred.var()


def main():
    generator = np.random.default_rng(3)
    with parallel.Parallel(N_JOBS) as jobs:
        for side in SIDES:
            print(f"{side} x {side} pixels", flush=True)
            explained = learn(jobs, photograph(side, generator), generator)
            print(f"explained: {explained:.3f}", flush=True)
    print("all pictures are denoised", flush=True)


if __name__ == "__main__":
    main()
