"""A detector in the way of RT-DETR, in small"""

import torch
from torch import nn

from pytorch_utils import compile_compatible_method_lru_cache


class ConvNorm(nn.Sequential):
    def __init__(self, inside, outside, stride):
        super().__init__(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
        )


class Detector(nn.Module):
    def __init__(self, classes=20, width=64):
        super().__init__()
        self.stem = nn.Sequential(ConvNorm(3, width, 4), ConvNorm(width, 2 * width, 2))
        self.stages = nn.ModuleList([ConvNorm(2 * width, 4 * width, 2), ConvNorm(4 * width, 8 * width, 2)])
        self.last = ConvNorm(8 * width, 8 * width, 1)
        self.project = nn.ModuleList([nn.Conv2d(4 * width, 128, 1), nn.Conv2d(8 * width, 128, 1)])
        self.score, self.box = nn.Linear(128, classes), nn.Linear(128, 4)

    @classmethod
    def from_pretrained(cls, path):
        model = cls()
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return model.eval()

    @compile_compatible_method_lru_cache(maxsize=32)
    def generate_anchors(self, spatial_shapes, grid_size=0.05, dtype=torch.float32):
        anchors = []
        for level, (height, width) in enumerate(spatial_shapes):
            y, x = torch.meshgrid(torch.arange(height, dtype=dtype), torch.arange(width, dtype=dtype), indexing="ij")
            centres = torch.stack([(x + 0.5) / width, (y + 0.5) / height], -1)
            sizes = torch.full_like(centres, grid_size * 2.0**level)
            anchors.append(torch.cat([centres, sizes], -1).reshape(1, height * width, 4))
        anchors = torch.cat(anchors, 1)
        return torch.log(anchors / (1 - anchors))

    def forward(self, pixels):
        first = self.stages[0](self.stem(pixels))
        second = self.last(self.stages[1](first))
        maps = [project(features) for project, features in zip(self.project, (first, second), strict=True)]
        anchors = self.generate_anchors(tuple(tuple(level.shape[-2:]) for level in maps))
        tokens = torch.cat([level.flatten(2).transpose(1, 2) for level in maps], 1)
        return self.score(tokens), (self.box(tokens) + anchors).sigmoid()
