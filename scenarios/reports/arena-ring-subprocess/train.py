"""Trains a classifier of short video clips, which a process decodes and passes on through an arena"""

import time

import numpy as np
import torch
from arena import RingArena
from pipeline import iterate_in_subprocess
from torch import nn

torch.set_num_threads(1)
CLIPS, FRAMES, HEIGHT, WIDTH, CLASSES, STEP_S = 300, 24, 144, 192, 10, 0.09
ARENA = 180 << 20


def decode(number):
    """A clip from its coefficients: a coarse picture that moves, made larger, with noise of the sensor"""
    source = np.random.default_rng(number)
    label = int(source.integers(CLASSES))
    coarse = source.integers(0, 200, (HEIGHT // 16, WIDTH // 16, 3), dtype=np.uint8)
    picture = coarse.repeat(16, 0).repeat(16, 1)
    clip = np.stack([np.roll(picture, (label + 1) * frame, axis=1) for frame in range(FRAMES)])
    clip += source.integers(0, 40, clip.shape, dtype=np.uint8)
    return clip, label


def decoded_clips(clips):
    for number in range(clips):
        yield decode(number)


class ClipNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.spatial = nn.Conv2d(3, 8, 5, stride=4)
        self.temporal = nn.Conv1d(8, 16, 3)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, clip):
        features = torch.relu(self.spatial(clip.permute(0, 3, 1, 2).float() / 255)).amax((2, 3))
        return self.head(torch.relu(self.temporal(features.T[None])).mean(2))


def main():
    torch.manual_seed(0)
    model = ClipNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    arena = RingArena(ARENA)
    try:
        begin, total, received = time.monotonic(), 0.0, 0
        for number, (clip, label) in enumerate(iterate_in_subprocess(decoded_clips, (CLIPS,), arena), 1):
            received += clip.nbytes
            clip = torch.from_numpy(clip)
            loss = nn.functional.cross_entropy(model(clip), torch.tensor([label]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            with torch.no_grad():
                while time.monotonic() < begin + number * STEP_S:
                    model(clip[:8])
            if number % 50 == 0:
                print(f"{number} clips, {received >> 20} MiB: loss {total / 50:.3f}", flush=True)
                total = 0.0
    finally:
        arena.close()


if __name__ == "__main__":
    main()
