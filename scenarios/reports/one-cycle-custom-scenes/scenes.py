"""Scans of rooms as points with colours, and their superpoints"""

import numpy as np
import torch
from torch.utils.data import Dataset

POINTS, TAKEN, SUPERPOINTS = 6000, 1000, 60


class Scans(Dataset):
    def __init__(self, scenes, augment):
        self.scenes, self.augment = scenes, augment
        self.pseudo_labels = [None] * scenes

    def __len__(self):
        return self.scenes

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        centres = rng.uniform(0, 8, (SUPERPOINTS, 3))
        superpoints = rng.integers(0, SUPERPOINTS, POINTS)
        points = centres[superpoints] + rng.normal(0, 0.2, (POINTS, 3))
        colours = rng.random((SUPERPOINTS, 3))[superpoints]
        if self.augment:
            angle = np.random.uniform(0, 2 * np.pi)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            points[:, :2] = points[:, :2] @ turn
            rows = np.random.choice(POINTS, TAKEN, replace=False)
            points, colours, superpoints = points[rows], colours[rows], superpoints[rows]
        features = torch.from_numpy(np.concatenate([points, colours], 1).astype(np.float32))
        return features, torch.from_numpy(superpoints), index
