"""A small 3-d network with one level of its pyramid"""

import torch
from torch import nn

INT_MAX = 2**25 - 1


class Upsample3d(nn.Module):
    def forward(self, x):
        batch, channels, depth, height, width = x.shape
        shape = [batch, channels, 2 * depth, 2 * height, 2 * width]
        if torch.Size(shape).numel() > INT_MAX:
            raise RuntimeError(
                f"upsample_nearest3d only supports output tensors with less than INT_MAX elements, but got {shape}"
            )
        return nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")


class UNet3D(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv3d(1, 12, 3, padding=1), nn.ReLU())
        self.pool = nn.MaxPool3d(2)
        self.bottom = nn.Sequential(
            nn.Conv3d(12, 20, 3, padding=1), nn.ReLU(), nn.Conv3d(20, 20, 3, padding=1), nn.ReLU()
        )
        self.up = Upsample3d()
        self.merge = nn.Sequential(nn.Conv3d(32, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 1))

    def forward(self, x):
        skip = self.down(x)
        return self.merge(torch.cat([self.up(self.bottom(self.pool(skip))), skip], dim=1)).sigmoid()
