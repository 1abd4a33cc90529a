"""Fits the colours of many splats to the pictures of a scene; the pixels of a picture are divided among the ranks."""

import json
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

SECONDS = 20.0


class Camera:
    def __init__(self, folder, entry):
        pixels = torch.from_numpy(np.load(os.path.join(folder, entry["image"])))
        picture = pixels.permute(2, 0, 1)[None].float() / 255
        blurred = nn.functional.avg_pool2d(picture, 5, 1, 2)
        smooth = nn.functional.interpolate(blurred, scale_factor=4.0, mode="bicubic", antialias=True)
        self.original_image = nn.functional.interpolate(smooth, scale_factor=0.25, mode="area")[0].contiguous()
        self.position = torch.tensor(entry["position"])


def load_cameras(folder):
    with open(os.path.join(folder, "cameras.json")) as file:
        entries = json.load(file)
    cameras = []
    for entry in entries:
        cameras.append(Camera(folder, entry))
        if len(cameras) % 20 == 0 and dist.get_rank() == 0:
            print(f"read {len(cameras)} of {len(entries)} pictures", flush=True)
    return cameras


class Scene(nn.Module):
    def __init__(self, splats=4096):
        super().__init__()
        self.colours = nn.Parameter(torch.rand(splats, 3))
        self.mixing = nn.Linear(3, 32)

    def forward(self, position, rows, columns):
        weights = torch.softmax(self.mixing(position), 0)
        field = (self.colours.view(32, -1, 3) * weights[:, None, None]).sum(0)
        picks = (torch.arange(rows)[:, None] * 7 + torch.arange(columns)[None] * 13) % len(field)
        return field[picks].permute(2, 0, 1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    cameras = load_cameras(sys.argv[1])
    scene = Scene()
    optimizer = torch.optim.Adam(scene.parameters(), lr=1e-2)
    over, step, end = torch.zeros(1), 0, time.monotonic() + SECONDS
    while over[0] == 0:
        camera = cameras[step * 17 % len(cameras)]
        strip = camera.original_image.chunk(world, 1)[rank]
        loss = (scene(camera.position, strip.shape[1], strip.shape[2]) - strip).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in scene.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        over[0] = time.monotonic() > end
        dist.all_reduce(over)
        step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
