"""Embeds the tiles of slides: each rank takes every second tile, and all write into one array on disk."""

import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FEATURES = 1024
SLIDES = [("A01", 5600), ("A02", 4900), ("B07", 3900), ("C03", 1200)]


class Tiles(Dataset):
    """Tiles of a slide; those of tissue take longer to read than those of glass, which come at every second place."""

    def __init__(self, name, count, side=64):
        self.seed, self.count, self.side = sum(name.encode()), count, side

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng((self.seed, i))
        tile = np.full((3, self.side, self.side), 240, np.uint8)
        if i % 2:
            coarse = torch.from_numpy(rng.random((1, 3, 96, 96), np.float32))
            fine = nn.functional.interpolate(coarse, size=(224, 224), mode="bicubic", antialias=True)
            small = nn.functional.interpolate(fine, size=(self.side, self.side), mode="bicubic", antialias=True)
            tile = (small[0].clamp(0, 1) * 255).byte().numpy()
        return i, torch.from_numpy(tile).float() / 255


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, stride=16)
        layer = nn.TransformerEncoderLayer(192, 4, 384, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(192, FEATURES)

    def forward(self, tiles):
        return self.head(self.body(self.patches(tiles).flatten(2).transpose(1, 2)).mean(1))


def shared_features(folder, tiles):
    return np.lib.format.open_memmap(os.path.join(folder, "features.npy"), "w+", np.float32, (tiles, FEATURES))


@torch.inference_mode()
def embed(encoder, name, count, folder):
    features = shared_features(folder, count)
    dataset = Tiles(name, count)
    sampler = DistributedSampler(dataset, shuffle=False, drop_last=False)
    for indices, tiles in DataLoader(dataset, batch_size=32, sampler=sampler):
        features[indices.numpy()] = encoder(tiles).numpy()
    features.flush()
    return float(features[dist.get_rank() :: 2].mean())


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    encoder = Encoder().eval()
    for name, count in SLIDES:
        mean = embed(encoder, name, count, sys.argv[1])
        print(f"rank {dist.get_rank()} slide {name}: {count} tiles, mean {mean:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
