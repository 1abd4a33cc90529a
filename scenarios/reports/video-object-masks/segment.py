"""Follows four objects through a long video on the GPU"""

import time

import numpy as np
import torch

from predictor import SIZE, VideoPredictor

SECONDS, FRAMES = 22.0, 2400


def decoded_frames():
    """What a decoder of video yields, one frame at a time"""
    rng = np.random.default_rng(0)
    ground = rng.integers(0, 160, (SIZE, SIZE, 3), dtype=np.uint8)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    for index in range(FRAMES):
        frame = np.roll(ground, index, axis=1)
        for number in range(4):
            centre = SIZE / 2 + SIZE / 3 * np.array([np.sin(index / 50 + number), np.cos(index / 70 + number)])
            inside = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < (20 + 5 * number) ** 2
            frame[inside] = 180 + 20 * number
        yield frame


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    predictor = VideoPredictor().cuda().eval()
    state = predictor.init_state(num_objects=4, offload_state_to_cpu=True)
    started, areas = time.monotonic(), None
    for frame_idx, areas in predictor.propagate_in_video(state, decoded_frames()):
        if frame_idx % 100 == 0:
            shown = ", ".join(f"{area:.3f}" for area in areas)
            print(f"frame {frame_idx}: areas {shown}, {time.monotonic() - started:.1f} s", flush=True)
        if time.monotonic() - started > SECONDS:
            break
    print(f"{frame_idx + 1} frames", flush=True)


if __name__ == "__main__":
    main()
