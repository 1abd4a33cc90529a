"""A worker: its half of the layers, and the blocks for keys and values; ends with the core"""

import os
import sys
import threading

import numpy as np

WIDTH, LAYERS = 1024, 4
rank, length, death = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def monitor():
    os.read(death, 1)  # nothing comes, until the other end is closed
    os._exit(0)


def main():
    threading.Thread(target=monitor, daemon=True).start()
    source = np.random.default_rng(rank)
    weights = [source.standard_normal((WIDTH, WIDTH), np.float32) / 32 for _ in range(LAYERS)]
    blocks = np.ones((8 * length, WIDTH), np.float32)
    position = 0
    while data := sys.stdin.buffer.read(4 * WIDTH):
        hidden = np.frombuffer(data, np.float32)
        blocks[position % len(blocks)] = hidden
        position += 1
        for weight in weights:
            hidden = np.tanh(weight @ hidden)
        sys.stdout.buffer.write(hidden.astype(np.float32).tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
