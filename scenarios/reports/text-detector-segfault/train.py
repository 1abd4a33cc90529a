"""Train a detector of text, with maps that are drawn from polygons in the loader's workers."""

import ctypes
import resource

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SIZE, SAMPLES, DEGENERATE = 192, 4000, 900


def native_bounds(points):
    """Ask the native clipper for the area of a polygon; it gives no vertices for a degenerate one."""
    vertices = points if len(np.unique(points, axis=0)) > 2 else None
    address = 0 if vertices is None else vertices.ctypes.data
    bounds = np.empty_like(points)
    ctypes.memmove(bounds.ctypes.data, address, bounds.nbytes)
    return bounds


class TextImages(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        target = np.zeros((SIZE, SIZE), dtype=np.float32)
        yy, xx = np.mgrid[0:SIZE, 0:SIZE]
        for _ in range(8):
            corner = rng.uniform(0, SIZE - 60, 2)
            points = corner + rng.uniform(0, 60, (4, 2))
            if index == DEGENERATE:
                points[:] = corner
            bounds = native_bounds(np.ascontiguousarray(points))
            low, high = bounds.min(axis=0), bounds.max(axis=0)
            distance = np.hypot(xx - bounds[:, 0].mean(), yy - bounds[:, 1].mean())
            inside = (xx > low[0]) & (xx < high[0]) & (yy > low[1]) & (yy < high[1])
            target = np.maximum(target, np.where(inside, np.exp(-distance / 30), 0)).astype(np.float32)
        return torch.from_numpy(image).permute(2, 0, 1), torch.from_numpy(target)


def main():
    torch.manual_seed(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    loader = DataLoader(TextImages(), batch_size=8, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, stride=2), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 2, stride=2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (images, target) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(images.float() / 255)[:, 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
