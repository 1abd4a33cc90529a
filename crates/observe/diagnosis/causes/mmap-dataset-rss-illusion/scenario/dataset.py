"""A dataset of 400 MiB in a file, of which each item is read once: through a mapping (mapped), or by read (read)."""

import mmap
import os
import sys
import time

MIB = 1 << 20
ITEMS = 400

if __name__ == "__main__":
    how, seconds, path = sys.argv[1], float(sys.argv[2]), sys.argv[3] + "/dataset"
    with open(path, "wb") as file:
        block = os.urandom(MIB)
        for _ in range(ITEMS):
            file.write(block)
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if how == "mapped" else None
        for item in range(ITEMS):
            block = mapped[item * MIB : (item + 1) * MIB] if mapped else file.read(MIB)
            time.sleep(seconds / ITEMS)
