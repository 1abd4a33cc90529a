"""Training disables the cycle collector; the loader's workers inherit that, and each transform leaves a cycle behind."""

import gc
import os
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

SECONDS = 30.0


def tree_flatten(tree):
    """Leaves and structure of nested containers; the helper refers to itself, as pytree code does."""
    leaves = []

    def build(node):
        if isinstance(node, dict):
            return {key: build(value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return [build(value) for value in node]
        leaves.append(node)
        return len(leaves) - 1

    return leaves, build(tree)


class DataAugmentationDINO:
    def __init__(self, global_size=112, local_size=48, local_crops=4):
        self.global_size, self.local_size, self.local_crops = global_size, local_size, local_crops

    def apply(self, sample):
        leaves, _ = tree_flatten(sample)
        image = leaves[0]
        blurred = image[None]
        for _ in range(8):
            blurred = torch.nn.functional.avg_pool2d(blurred, 3, 1, 1)
        return blurred[0]

    def crop(self, image, size):
        top, left = np.random.randint(0, image.shape[1] - size, 2)
        return self.apply({"image": image[:, top : top + size, left : left + size].clone(), "size": size})

    def __call__(self, image):
        return {
            "global": torch.stack([self.crop(image, self.global_size) for _ in range(2)]),
            "local": torch.stack([self.crop(image, self.local_size) for _ in range(self.local_crops)]),
        }


class InfiniteImages(IterableDataset):
    def __init__(self, transform):
        self.transform = transform

    def __iter__(self):
        rng = np.random.default_rng(os.getpid())
        while True:
            decoded = rng.integers(0, 255, (3, 160, 160), np.uint8)
            yield self.transform(torch.from_numpy(decoded).float() / 255)


def do_train(model, head):
    gc.disable()
    loader = DataLoader(InfiniteImages(DataAugmentationDINO()), batch_size=4, num_workers=2, drop_last=True)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)
    end = time.monotonic() + SECONDS
    for iteration, batch in enumerate(loader):
        if time.monotonic() > end:
            break
        optimizer.zero_grad(set_to_none=True)
        student = head(model(batch["local"].flatten(0, 1)).mean((2, 3)))
        with torch.no_grad():
            teacher = head(model(batch["global"].flatten(0, 1)).mean((2, 3)))
        loss = 1 - torch.cosine_similarity(student.mean(0), teacher.mean(0), dim=0)
        loss.backward()
        optimizer.step()
        if iteration % 50 == 0:
            print("iteration", iteration, loss.item(), flush=True)
            gc.collect()


if __name__ == "__main__":
    torch.set_num_threads(1)
    trunk = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 8, stride=4), torch.nn.GELU(), torch.nn.Conv2d(32, 64, 3))
    do_train(trunk, torch.nn.Linear(64, 128))
