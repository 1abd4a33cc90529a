"""Blocks of a simulated amplifier: a header with the sizes, then the compressed samples, on standard output"""

import argparse
import select
import socket
import struct
import sys
import time
import zlib

import numpy as np


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--channels", type=int, default=40)
    parser.add_argument("--rows", type=int, default=2400)
    parser.add_argument("--seconds", type=float, default=26)
    arguments = parser.parse_args()
    rng = np.random.default_rng(5)
    out = sys.stdout.buffer
    started, number = time.monotonic(), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trigger:
        trigger.bind(("127.0.0.1", 0))
        while time.monotonic() - started < arguments.seconds:
            ready, _, _ = select.select([trigger], [], [], 0.06)
            if ready:
                print("triggered", trigger.recv(16), file=sys.stderr)
            block = rng.standard_normal((arguments.rows, arguments.channels))
            np.cumsum(block, axis=0, out=block)
            packed = zlib.compress(np.round(block, 2).tobytes(), 1)
            out.write(struct.pack("<III", number, arguments.rows, len(packed)) + packed)
            out.flush()
            number += 1
    print(f"{number} blocks recorded", file=sys.stderr)


if __name__ == "__main__":
    main()
