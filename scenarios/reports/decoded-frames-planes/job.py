"""Counts the scenes of a full HD clip by a small network on each of its frames"""

import os
import time

import torch
from torch import nn

import container

torch.set_num_threads(1)
WIDTH, HEIGHT, SECONDS, FRAME_S = 1920, 1080, 41, 0.025


class Scenes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 12, 5, 2), nn.ReLU(), nn.Conv2d(12, 24, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        )
        self.head = nn.Linear(384, 32)

    @torch.inference_mode()
    def forward(self, luma):
        return self.head(self.layers(torch.from_numpy(luma[::8, ::8].copy()).float()[None, None] / 255))[0]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def main():
    torch.manual_seed(0)
    container.write("clip.bin", WIDTH, HEIGHT, SECONDS)
    model, before, scenes, until = Scenes().eval(), None, 0, time.monotonic()
    with container.open_input("clip.bin") as clip:
        for frame in clip.decode():
            until = max(until, time.monotonic() - 1) + FRAME_S
            luma = frame.planes[0].to_array()
            features = model(luma)
            while time.monotonic() < until:
                features = 0.5 * (features + model(luma))
            if before is None or (features - before).norm() > 0.02 * before.norm():
                scenes += 1
            before = features
            if frame.pts % 100 == 99:
                print(f"{frame.pts + 1} frames, {scenes} scenes, RSS {resident()} MB", flush=True)
    os.remove("clip.bin")


if __name__ == "__main__":
    main()
