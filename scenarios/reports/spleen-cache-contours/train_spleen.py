"""Segmentation of the spleen; the outlines of all scans are cached by the dataset's constructor"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SCANS, POINTS, SHAPE, LAST_S = 400, 9000, (48, 112, 112), 27.0


class LoadOutlined:
    """An outline as the annotation tool exports it: two lists of coordinates in millimetres."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, name):
        angle = np.sort(self.rng.uniform(0, 2 * np.pi, POINTS))
        radius = 28 + 5 * np.sin(3 * angle + self.rng.uniform(0, 6)) + self.rng.normal(0, 0.4, POINTS)
        return {
            "name": name,
            "x": (56 + radius * np.cos(angle)).tolist(),
            "y": (56 + radius * np.sin(angle)).tolist(),
            "slope": float(self.rng.normal(1, 0.1)),
        }


class RandGibbsNoise:
    """Cuts high frequencies of a volume."""

    def __init__(self, alpha):
        self.alpha = alpha

    def __call__(self, volume, rng):
        spectrum = np.fft.rfftn(volume)
        keep = int(spectrum.shape[2] * (1 - rng.uniform(0, self.alpha)))
        spectrum[:, :, keep:] = 0
        return np.fft.irfftn(spectrum, volume.shape)


class CacheDataset(Dataset):
    def __init__(self, names, transform):
        self.cache = [transform(name) for name in names]
        self.noise = RandGibbsNoise(0.4)

    def __len__(self):
        return len(self.cache)

    def __getitem__(self, index):
        item = self.cache[index]
        rng = np.random.default_rng(index)
        mask = np.zeros(SHAPE[1:], np.float32)
        area, last_x, last_y = 0.0, item["x"][-1], item["y"][-1]
        for x, y in zip(item["x"], item["y"]):
            area += last_x * y - x * last_y
            mask[int(y) % SHAPE[1], int(x) % SHAPE[2]] = 1
            last_x, last_y = x, y
        volume = rng.standard_normal(SHAPE) * item["slope"] + mask
        volume = self.noise(self.noise(volume, rng), rng)
        middle = np.stack([volume[z] for z in (16, 24, 32)]).astype(np.float32)
        return torch.from_numpy(middle), torch.from_numpy(mask), abs(area) / 2


def main():
    torch.manual_seed(0)
    dataset = CacheDataset([f"spleen_{n}" for n in range(SCANS)], LoadOutlined(7))
    print(f"{len(dataset)} scans cached", flush=True)
    loader = DataLoader(
        dataset, batch_size=2, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context="fork"
    )
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    started = time.monotonic()
    step, epoch = 0, 0
    while time.monotonic() - started < LAST_S:
        for images, masks, areas in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(images)[:, 0], masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 40 == 0:
                print(f"epoch {epoch} step {step}: {loss.item():.4f} {areas.mean().item():.0f}", flush=True)
            if time.monotonic() - started > LAST_S:
                break
        epoch += 1


if __name__ == "__main__":
    main()
