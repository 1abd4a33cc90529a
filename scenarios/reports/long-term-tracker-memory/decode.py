"""Decode a video: raw frames of a disc that wanders over a textured background, to the standard output"""

import sys
import zlib

import numpy as np

SIZE = 192


def main():
    frames = int(sys.argv[1])
    generator = np.random.default_rng(21)
    background = zlib.compress(generator.integers(0, 160, (SIZE, SIZE, 3), dtype=np.uint8).tobytes(), 1)
    across, along = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    for number in range(frames):
        frame = np.frombuffer(zlib.decompress(background), np.uint8).reshape(SIZE, SIZE, 3).copy()
        x = SIZE / 2 + 60 * np.sin(number / 31)
        y = SIZE / 2 + 50 * np.cos(number / 23)
        frame[(across - x) ** 2 + (along - y) ** 2 < 24**2] = (240, 60, 60)
        try:
            sys.stdout.buffer.write(frame.tobytes())
        except BrokenPipeError:
            return 1
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
