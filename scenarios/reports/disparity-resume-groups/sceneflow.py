"""Rendered pairs of pictures with their disparity, kept in memory for the epochs"""

import time

import numpy as np
import torch
from torch.utils.data import Dataset

HEIGHT, WIDTH, CROP, PAIR_S = 192, 320, 96, 0.055


def render(number):
    """A few textured planes at different depths, seen from two places"""
    source = np.random.default_rng(number)
    left = source.uniform(0.0, 1.0, (HEIGHT, WIDTH, 3)).astype(np.float32)
    disparity = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
    for depth in np.sort(source.uniform(2.0, 24.0, 6)):
        top, start = source.integers(0, HEIGHT - 64), source.integers(0, WIDTH - 96)
        disparity[top : top + 64, start : start + 96] = depth
    columns = (np.arange(WIDTH)[None] - disparity.astype(int)).clip(0)
    right = np.take_along_axis(left, np.repeat(columns[..., None], 3, 2), axis=1)
    return left, right, disparity


class SceneFlow(Dataset):
    def __init__(self, pairs, show=False):
        self.pairs, begin = [], time.monotonic()
        for number in range(pairs):
            left, right, disparity = render(number)
            self.pairs.append((left, right, disparity))
            # The occlusions are counted again until the time of the pair is over
            while time.monotonic() < begin + (number + 1) * PAIR_S:
                np.count_nonzero(np.diff(disparity, axis=1) > 1.0)
            if show and (number + 1) % 40 == 0:
                print(f"rendered {number + 1} of {pairs} pairs", flush=True)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        left, right, disparity = self.pairs[index]
        top = int(torch.randint(0, HEIGHT - CROP, ()))
        start = int(torch.randint(0, WIDTH - CROP, ()))
        window = slice(top, top + CROP), slice(start, start + CROP)
        pictures = np.concatenate([left[window], right[window]], 2).transpose(2, 0, 1)
        return torch.from_numpy(pictures.copy()), torch.from_numpy(disparity[window].copy())
