"""Reads tokens from stdin and counts them; keeps the table of counts only."""

import sys

import numpy as np


def main():
    shard = sys.argv[1]
    counts = np.zeros(65536, np.int64)
    pairs = np.zeros((256, 256), np.int64)
    while True:
        chunk = sys.stdin.buffer.read(1 << 20)
        if not chunk:
            break
        tokens = np.frombuffer(chunk[: len(chunk) // 2 * 2], np.uint16)
        counts += np.bincount(tokens, minlength=65536)
        np.add.at(pairs, (tokens[:60_000] >> 8, tokens[:60_000] & 255), 1)
    print(f"{shard}: {counts.sum()} tokens, {np.count_nonzero(counts)} kinds, most {pairs.max()}")


if __name__ == "__main__":
    main()
