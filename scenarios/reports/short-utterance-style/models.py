"""The style encoder, which works on a single recording of any length, and a decoder of mel spectrograms"""

import torch
from torch import nn


class DownSample(nn.Module):
    def forward(self, x):
        if x.shape[-1] % 2 != 0:
            x = torch.cat([x, x[..., -1:]], dim=-1)
        return nn.functional.avg_pool2d(x, 2)


class ResBlk(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.conv1 = nn.Conv2d(dim_in, dim_in, 3, 1, 1)
        self.conv2 = nn.Conv2d(dim_in, dim_out, 3, 1, 1)
        self.shortcut = nn.Conv2d(dim_in, dim_out, 1)
        self.downsample = DownSample()

    def forward(self, x):
        residual = self.downsample(self.conv1(nn.functional.leaky_relu(x, 0.2)))
        residual = self.conv2(nn.functional.leaky_relu(residual, 0.2))
        return (self.downsample(self.shortcut(x)) + residual) / 2**0.5


class StyleEncoder(nn.Module):
    def __init__(self, dim_in=16, style_dim=64, max_conv_dim=64):
        super().__init__()
        blocks = [nn.Conv2d(1, dim_in, 3, 1, 1)]
        for _ in range(4):
            dim_out = min(dim_in * 2, max_conv_dim)
            blocks.append(ResBlk(dim_in, dim_out))
            dim_in = dim_out
        blocks += [nn.LeakyReLU(0.2), nn.Conv2d(dim_in, dim_in, 5, 1, 0), nn.AdaptiveAvgPool2d(1), nn.LeakyReLU(0.2)]
        self.shared = nn.Sequential(*blocks)
        self.unshared = nn.Linear(dim_in, style_dim)

    def forward(self, x):
        h = self.shared(x)
        return self.unshared(h.view(h.size(0), -1))


class Decoder(nn.Module):
    def __init__(self, style_dim=64, width=96, mels=80):
        super().__init__()
        self.letters = nn.Embedding(128, width)
        self.recurrent = nn.GRU(width + style_dim, width, batch_first=True)
        self.head = nn.Linear(width, mels)

    def forward(self, text, style, frames):
        letters = self.letters(text).transpose(1, 2)
        stretched = nn.functional.interpolate(letters, size=frames, mode="nearest").transpose(1, 2)
        style = style[:, None].expand(-1, frames, -1)
        hidden, _ = self.recurrent(torch.cat([stretched, style], 2))
        return self.head(hidden).transpose(1, 2)
