"""Segment the cells of two stacks: predict their boundaries patch by patch"""

import time

import torch

from array_predictor import ArrayPredictor
from unet import UNet3D

torch.set_num_threads(1)
STACKS = {
    "root-inset": {"shape": (32, 160, 160), "patch": (12, 32, 32), "seconds": 20.0},
    "ovule-whole": {"shape": (48, 256, 256), "patch": (20, 56, 56), "seconds": 14.0},
}


def gaussian(stack, rounds=3):
    for _ in range(rounds):
        stack = torch.nn.functional.avg_pool3d(stack[None, None], 3, stride=1, padding=1)[0, 0]
    return (stack - stack.mean()) / (stack.std() + 1e-6)


def main():
    torch.manual_seed(6)
    model = UNet3D().eval()
    for name, settings in STACKS.items():
        stack = gaussian(torch.rand(settings["shape"]))
        print(f"{name}: {settings['shape']} voxels, patches of {settings['patch']}", flush=True)
        predictor = ArrayPredictor(model, settings["patch"])
        end, passes, boundaries = time.monotonic() + settings["seconds"], 0, None
        while time.monotonic() < end:
            boundaries = predictor.predict(stack, end)
            passes += 1
        print(f"{name}: {passes} passes, mean of the boundaries {boundaries.mean().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
