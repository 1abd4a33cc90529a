"""Grows to so many MiB, 4 MiB at a time, and touches every page."""

import sys
import time

kept = []
for _ in range(int(sys.argv[1]) // 4):
    kept.append(bytearray(b"\1") * (4 << 20))
    time.sleep(0.02)
print("holds", len(kept) * 4, "MiB")
