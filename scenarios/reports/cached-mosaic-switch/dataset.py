"""Images of a detection data set, and the pipeline of transforms that they go through"""

import numpy as np
import torch
from torch.utils.data import Dataset


class DetDataset(Dataset):
    def __init__(self, images, pipeline):
        self.images, self.pipeline = images, pipeline
        self.rng = None

    def __len__(self):
        return self.images

    def load(self, index):
        """A scene of rectangles, as large as a photograph"""
        rng = np.random.default_rng(index)
        height, width = int(rng.integers(700, 900)), int(rng.integers(900, 1100))
        img = np.repeat(np.repeat(rng.integers(0, 90, (height // 20, width // 20, 3), np.uint8), 20, 0), 20, 1)
        corners = rng.random((8, 2)) * [img.shape[1] - 130, img.shape[0] - 130]
        boxes = np.concatenate([corners, corners + rng.uniform(40, 120, (8, 2))], 1).astype(np.float32)
        labels = rng.integers(0, 8, 8)
        for (left, top, right, bottom), label in zip(boxes.astype(int), labels):
            img[top:bottom, left:right] = 100 + 18 * label
        return {"img": img, "boxes": boxes, "labels": labels}

    def __getitem__(self, index):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed() % 2**32)
        results = self.load(index)
        for transform in self.pipeline:
            results = transform(results, self.rng)
        return torch.from_numpy(results["img"]).permute(2, 0, 1), torch.from_numpy(results["boxes"])


def collate(batch):
    images, boxes = zip(*batch)
    return torch.stack(images), list(boxes)
