"""Fills files in /dev/shm, 10 MiB each, up to so many MiB, and removes them at its end."""

import os
import sys
import time

paths = []
for number in range(int(sys.argv[1]) // 10):
    path = f"/dev/shm/part-{number}"
    with open(path, "wb") as file:
        file.write(b"\1" * (10 << 20))
    paths.append(path)
    time.sleep(0.1)
for path in paths:
    os.unlink(path)
print("filled", len(paths) * 10, "MiB")
