"""Frames of a station's entrance with the detector's boxes, as records on stdout"""

import argparse
import struct
import sys
import time

import numpy as np

HEIGHT, WIDTH = 240, 320
PEOPLE, FALSE_POSITIVES = 6, 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=27.0)
    seconds = parser.parse_args().seconds
    generator = np.random.default_rng(9)
    places = generator.uniform((20, 40), (220, 140), (PEOPLE, 2))
    speeds = generator.uniform(-1.5, 1.5, (PEOPLE, 2))
    started = time.monotonic()
    out = sys.stdout.buffer
    while time.monotonic() - started < seconds:
        frame = generator.integers(0, 90, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        places += speeds
        speeds = np.where((places < (4, 4)) | (places > (WIDTH - 44, HEIGHT - 84)), -speeds, speeds)
        places = np.clip(places, (4, 4), (WIDTH - 44, HEIGHT - 84))
        ghosts = generator.uniform((4, 4), (WIDTH - 44, HEIGHT - 84), (FALSE_POSITIVES, 2))
        corners = np.concatenate([places, ghosts])
        boxes = np.concatenate([corners, corners + (40, 80)], axis=1).astype(np.float32)
        for left, top, right, bottom in boxes[:PEOPLE].astype(int):
            frame[top:bottom, left:right] += np.uint8(100)
        out.write(struct.pack("<I", len(boxes)) + boxes.tobytes() + frame.tobytes())
    out.flush()


if __name__ == "__main__":
    main()
