"""Track an object through a video, with its mask in the first frame only"""

import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

from long_term import LongTermMemory

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, FRAMES, FRAME_S = 192, 500, 0.07
KEYS, VALUES, LONG_TERM_GAP, MAX_LEN_LONG_TERM = 128, 1024, 2, 75


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, 96, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.key = nn.Conv2d(96, KEYS, 1)
        self.value = nn.Conv2d(97, VALUES, 1)
        self.query = nn.AvgPool2d(6)
        self.decode = nn.Conv2d(VALUES + 96, 1, 1)
        self.long_term = LongTermMemory(MAX_LEN_LONG_TERM)

    def remember(self, features, mask):
        small = nn.functional.interpolate(mask[None, None], size=features.shape[2:], mode="area")
        values = self.value(torch.cat([features, small], dim=1))
        self.long_term.add(self.key(features).flatten(2)[0], values.flatten(2)[0])

    def track(self, features):
        query = self.query(self.key(features)).flatten(2)[0].t()
        readout = self.long_term.read(query)
        side = features.shape[2] // 6
        readout = readout.t().reshape(1, VALUES, side, side)
        readout = nn.functional.interpolate(readout, size=features.shape[2:], mode="bilinear")
        logits = self.decode(torch.cat([readout, features], dim=1))
        return nn.functional.interpolate(logits, size=(SIZE, SIZE), mode="bilinear")[0, 0].sigmoid()


def read_frame(stream):
    data = stream.read(SIZE * SIZE * 3)
    frame = np.frombuffer(data, np.uint8).reshape(SIZE, SIZE, 3)
    return torch.from_numpy(frame.astype(np.float32) / 255).permute(2, 0, 1)[None]


def main():
    torch.manual_seed(9)
    tracker = Tracker().eval()
    command = [sys.executable, os.path.join(HERE, "decode.py"), str(FRAMES)]
    decoder = subprocess.Popen(command, stdout=subprocess.PIPE)
    mask = torch.zeros(SIZE, SIZE)
    mask[120:170, 70:120] = 1.0
    area = 0.0
    with torch.inference_mode():
        for number in range(FRAMES):
            end = time.monotonic() + FRAME_S
            features = tracker.encoder(read_frame(decoder.stdout))
            if number > 0:
                mask = tracker.track(features)
            if number % LONG_TERM_GAP == 0:
                tracker.remember(features, mask)
            area += mask.mean().item()
            while time.monotonic() < end:
                features = 0.5 * features + 0.5 * nn.functional.avg_pool2d(features, 3, stride=1, padding=1)
                area += float(features.mean()) * 1e-9
            if number % 50 == 0:
                print(f"frame {number}: {len(tracker.long_term)} frames in long-term memory", flush=True)
    decoder.stdout.close()
    status = decoder.wait()
    print(f"{FRAMES} frames, mean area {area / FRAMES:.4f}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
