"""Writes one byte into every 2 MiB of so many MiB; with `huge`, of memory for which it asks for huge pages, with
`small` for none."""

import mmap
import sys
import time

LENGTH = int(sys.argv[2]) << 20
area = mmap.mmap(-1, LENGTH, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if sys.argv[1] == "as-it-is":
    # In a guest that has run much else: its little memory is in pieces, and none of 2 MiB is free.
    for name in ("drop_caches", "compact_memory"):
        with open(f"/proc/sys/vm/{name}", "w") as file:
            file.write("1")
else:
    area.madvise(mmap.MADV_HUGEPAGE if sys.argv[1] == "huge" else mmap.MADV_NOHUGEPAGE)
for offset in range(0, LENGTH, 2 << 20):
    area[offset] = 1
    time.sleep(0.01)
print("touched", LENGTH >> 21, "bytes")
