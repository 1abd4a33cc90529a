"""Batches of blocks of some MiB, each batch larger than the one before or all alike, that are let go of but for the last
block: `batches.py growing|steady SECONDS [release]`. The allocators' scenarios share it.

release: tcmalloc is asked to give back what is free.
"""

import ctypes
import random
import sys
import time

MIB = 1 << 20
LEAST, MOST = 1 * MIB, 4 * MIB
LARGEST = 420 * MIB  # the last batch

last = b""


def batch(size, draw):
    global last
    blocks = []
    while size > 0:
        block = draw.randint(LEAST, MOST)
        blocks.append(b"x" * block)
        size -= block
    last = blocks[-1]


if __name__ == "__main__":
    how, seconds, release = sys.argv[1], float(sys.argv[2]), sys.argv[3:] == ["release"]
    draw = random.Random(7)
    # The first large block that is freed raises malloc's threshold.
    first = b"x" * (30 * MIB)
    del first
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        part = (time.monotonic() - began) / seconds if how == "growing" else 0.6
        batch(int(LARGEST * max(part, 0.05)), draw)
        if release:
            ctypes.CDLL(None).MallocExtension_ReleaseFreeMemory()
        time.sleep(0.5)
