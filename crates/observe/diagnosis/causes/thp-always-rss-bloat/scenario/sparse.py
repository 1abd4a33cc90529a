"""Writes one byte into every 128 KiB of so many MiB; with `huge`, of memory for which it asks for huge pages, with
`small` for none.

At its limit the kernel hands out small pages instead: one for every 2 MiB would fit into what is left.
"""

import mmap
import sys
import time

LENGTH = int(sys.argv[2]) << 20
area = mmap.mmap(-1, LENGTH, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if sys.argv[1] in ("huge", "small"):
    area.madvise(mmap.MADV_HUGEPAGE if sys.argv[1] == "huge" else mmap.MADV_NOHUGEPAGE)
for huge in range(0, LENGTH, 2 << 20):
    for offset in range(huge, huge + (2 << 20), 128 << 10):
        area[offset] = 1
    time.sleep(0.01)
print("touched", LENGTH >> 17, "bytes")
