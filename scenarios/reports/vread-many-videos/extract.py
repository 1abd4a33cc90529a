"""Features of the beginning of every video of a list, for action recognition"""

import os
import tempfile
import time

import numpy as np
import torch
import videoio
from torch import nn

FRAMES, SIDE = 16, 96
CLIP_S, LAST_S = 0.17, 60.0


def write_videos(folder, count=20, length=70):
    generator = np.random.default_rng(6)
    paths = []
    for number in range(count):
        base = generator.integers(0, 8, (1, SIDE, SIDE, 3))
        drift = np.arange(length)[:, None, None, None] * 2 + number
        paths.append(os.path.join(folder, f"v_{number:03d}.gz"))
        videoio.vwrite(paths[-1], (base + drift).astype(np.uint8))
    return paths


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(3, 24, 3, stride=(1, 2, 2)), nn.ReLU(), nn.Conv3d(24, 48, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool3d(1), nn.Flatten(),
        )  # fmt: skip

    def forward(self, clip):
        return self.layers(clip)


def features_of(network, frames, generator):
    """The mean over as many random crops as the time for a clip allows"""
    video = torch.from_numpy(frames).permute(3, 0, 1, 2).float()[None] / 255.0
    begun, crops = time.monotonic(), []
    while time.monotonic() - begun < CLIP_S:
        top, left = torch.randint(0, SIDE - 80, (2,), generator=generator).tolist()
        crops.append(network(video[..., top : top + 80, left : left + 80]))
    return torch.cat(crops).mean(0)


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    network, generator = Network().eval(), torch.Generator().manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        videos = write_videos(folder)
        started, number = time.monotonic(), 0
        with open(os.path.join(folder, "features.bin"), "wb") as out:
            while time.monotonic() - started < LAST_S:
                frames = videoio.vread(videos[number % len(videos)], num_frames=FRAMES, shape=(SIDE, SIDE, 3))
                out.write(features_of(network, frames, generator).numpy().tobytes())
                number += 1
                if number % 20 == 0:
                    print(f"{number} videos", flush=True)


if __name__ == "__main__":
    main()
