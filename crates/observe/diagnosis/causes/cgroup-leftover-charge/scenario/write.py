"""Writes 100 MiB into a file: its pages stay in the cache, charged to this cgroup."""

import sys

with open(sys.argv[1], "wb") as file:
    for _ in range(25):
        file.write(b"\1" * (4 << 20))
