"""Commits address space, 8 MiB at a time, and touches none of it, up to so many MiB.

With vm.overcommit_memory=2 the kernel refuses at CommitLimit, with memory free.
"""

import mmap
import sys
import time

kept = []
for _ in range(int(sys.argv[1]) // 8):
    kept.append(mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    time.sleep(0.02)
print("committed", len(kept) * 8, "MiB")
