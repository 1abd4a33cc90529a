"""Batches of records of 3000 bytes, each batch larger than the one before, that are let go of: `records.py SECONDS`.

One size: what was freed of many sizes jemalloc 5.3 gives back at once.
"""

import sys
import time

RECORD = b"x" * 2900
MOST = 800 << 20  # bytes of the last batch


def batch(size):
    return sum(len(record) for record in [RECORD + b"%99d" % number for number in range(size // 3000)])


if __name__ == "__main__":
    seconds, began, total = float(sys.argv[1]), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        part = (time.monotonic() - began) / seconds
        total += batch(int(MOST * max(part, 0.05)))
        time.sleep(0.5)
    print(total)
