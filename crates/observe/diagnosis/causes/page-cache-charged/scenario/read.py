"""Writes a file of so many MiB in the working directory, and reads it; with `drop` each part leaves the cache."""

import os
import sys
import time

with open("data", "w+b") as file:
    for _ in range(int(sys.argv[1]) // 4):
        file.write(b"\1" * (4 << 20))
        if "drop" in sys.argv:
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        time.sleep(0.03)
    file.seek(0)
    while file.read(4 << 20):
        if "drop" in sys.argv:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
time.sleep(1)
os.unlink("data")
