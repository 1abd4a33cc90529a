"""Decodes the camera's recording: writes raw frames to the standard output, as many a second as the camera took"""

import select
import sys
import time

import numpy as np

HEIGHT, WIDTH, RATE, FRAMES = 360, 640, 20, 1200


def main():
    numbers = np.random.default_rng(3)
    scene = numbers.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    output, start = sys.stdout.buffer, time.monotonic()
    try:
        for number in range(FRAMES):
            frame = np.roll(scene, number, 1)
            frame[number % HEIGHT] = numbers.integers(0, 256, (WIDTH, 3), dtype=np.uint8)
            output.write(frame.tobytes())
            output.flush()
            wait = start + (number + 1) / RATE - time.monotonic()
            if wait > 0:
                select.select([], [], [], wait)
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
