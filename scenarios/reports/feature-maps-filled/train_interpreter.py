"""Trains an interpreter: small networks that tell the part from the features of a pixel."""

import time

import numpy as np
import torch
from torch import nn

PICTURES, SIDE, MODELS = 40, 64, 3
CHANNELS = (96, 192, 320, 512)
SECONDS_PER_MODEL = 6.0


class Generator(nn.Module):
    """The upper layers of a generator, and the features of each at the resolution of the picture."""

    def __init__(self):
        super().__init__()
        widths = CHANNELS[::-1]
        self.base = nn.Linear(64, widths[0] * 64)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip((widths[0], *widths[:-1]), widths))

    @torch.no_grad()
    def features(self, latent):
        x = self.base(latent).view(1, -1, 8, 8)
        maps = []
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            maps.append(nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bilinear"))
            if number < 3:
                x = nn.functional.interpolate(x, scale_factor=2.0)
        return torch.cat(maps, 1)[0]


def prepare_data(generator):
    depth = sum(CHANNELS)
    all_feature_maps = np.zeros((PICTURES * SIDE * SIDE, depth), np.float16)
    all_masks = np.zeros(PICTURES * SIDE * SIDE, np.uint8)
    for n in range(PICTURES):
        latent = torch.randn(1, 64, generator=torch.Generator().manual_seed(n))
        maps = generator.features(latent)
        rows = slice(n * SIDE * SIDE, (n + 1) * SIDE * SIDE)
        all_feature_maps[rows] = maps.flatten(1).T.half().numpy()
        smooth = nn.functional.avg_pool2d(maps[:64].mean(0)[None, None], 9, 1, 4)[0, 0]
        all_masks[rows] = torch.bucketize(smooth, smooth.flatten().quantile(torch.tensor([0.3, 0.6, 0.9]))).flatten()
        print(f"picture {n}: features {tuple(maps.shape)}", flush=True)
    return all_feature_maps, all_masks


class PixelClassifier(nn.Module):
    def __init__(self, depth, parts):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(depth, 128), nn.ReLU(), nn.BatchNorm1d(128), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, parts)
        )

    def forward(self, x):
        return self.layers(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    features, masks = prepare_data(Generator().eval())
    rng = np.random.default_rng(0)
    for number in range(MODELS):
        classifier = PixelClassifier(features.shape[1], 4)
        optimizer = torch.optim.Adam(classifier.parameters(), lr=1e-3)
        end = time.monotonic() + SECONDS_PER_MODEL
        while time.monotonic() < end:
            rows = np.sort(rng.integers(0, len(features), 64))
            x, y = torch.from_numpy(features[rows]).float(), torch.from_numpy(masks[rows]).long()
            loss = nn.functional.cross_entropy(classifier(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"model {number}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
