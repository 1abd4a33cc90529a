"""Maps a sparse file of 64 MiB, as numpy.memmap does, and writes to it: on a full filesystem that is a SIGBUS."""

import mmap
import os
import tempfile
import time

path = os.path.join(tempfile.gettempdir(), "features.bin")
with open(path, "w+b") as file:
    file.truncate(64 << 20)
    with mmap.mmap(file.fileno(), 64 << 20) as mapped:
        for offset in range(0, 64 << 20, 4096):
            mapped[offset] = 1
            if offset % (1 << 20) == 0:
                time.sleep(0.03)
os.unlink(path)
print("wrote")
