"""Reserves 60 % of what may still be committed, touches little of it, and then asks for as much again.

`commit.py fork|alloc`: by fork(2), which accounts the whole parent again, or by one more allocation. With
vm.overcommit_memory=2 that is refused with ENOMEM while nearly all memory is free.
"""

import mmap
import os
import sys
import time


def meminfo(name):
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024


size = (meminfo("CommitLimit") - meminfo("Committed_AS")) * 6 // 10
dataset = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for offset in range(0, len(dataset), 64 * 4096):
    dataset[offset] = 1
time.sleep(2.5)
if sys.argv[1] == "fork":
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
else:
    copy = bytearray(size)
    print(len(copy))
print("enough", meminfo("MemAvailable") >> 20, "MiB available")
