"""Reserves address space, 32 MiB at a time, and touches none of it."""

import mmap
import sys
import time

kept = []
for _ in range(int(sys.argv[1]) // 32):
    kept.append(mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    time.sleep(0.03)
print("reserved", len(kept) * 32, "MiB")
