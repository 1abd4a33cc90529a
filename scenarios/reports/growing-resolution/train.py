"""Progressive growing: 8, 16, 32, 64 and 128 pixels."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STAGES = ((8, 4.0), (16, 4.0), (32, 4.0), (64, 5.0), (128, 18.0))
LATENT = 64


class Faces(Dataset):
    def __init__(self, resolution):
        self.resolution = resolution

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        base = torch.from_numpy(np.random.default_rng(i).random((1, 3, 64, 64), np.float32))
        size = (self.resolution, self.resolution)
        return nn.functional.interpolate(base, size=size, mode="bilinear", antialias=True)[0] * 2 - 1


class Generator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.width = width
        self.first = nn.Sequential(nn.ConvTranspose2d(LATENT, width, 4), nn.LeakyReLU(0.2))
        self.blocks = nn.ModuleList()
        self.to_rgb = nn.Conv2d(width, 3, 1)

    def grow(self):
        block = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(self.width, self.width, 3, padding=1))
        self.blocks.append(nn.Sequential(block, nn.LeakyReLU(0.2)))

    def forward(self, z):
        x = self.first(z[:, :, None, None])
        for block in self.blocks:
            x = block(x)
        return torch.tanh(self.to_rgb(x))


class Discriminator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.width = width
        self.from_rgb = nn.Conv2d(3, width, 1)
        self.blocks = nn.ModuleList()
        self.last = nn.Conv2d(width, 1, 4)

    def grow(self):
        block = nn.Sequential(nn.Conv2d(self.width, self.width, 3, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2))
        self.blocks.insert(0, block)

    def forward(self, x):
        x = self.from_rgb(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x).flatten()


def train_stage(generator, discriminator, resolution, seconds):
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.0, 0.99))
    end, step = time.monotonic() + seconds, 0
    for real in DataLoader(Faces(resolution), 8, num_workers=2):
        z = torch.randn(len(real), LATENT)
        fake = generator(z)
        d_loss = nn.functional.softplus(discriminator(fake.detach())) + nn.functional.softplus(-discriminator(real))
        d_optimizer.zero_grad()
        d_loss.mean().backward()
        d_optimizer.step()
        g_loss = nn.functional.softplus(-discriminator(fake)).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        step += 1
        if time.monotonic() > end:
            break
    print(f"{resolution} pixels: {step} steps, loss {g_loss.item():.3f} {d_loss.mean().item():.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator, discriminator = Generator(), Discriminator()
    for resolution, seconds in STAGES:
        generator.grow()
        discriminator.grow()
        train_stage(generator, discriminator, resolution, seconds)


if __name__ == "__main__":
    main()
