"""Maps a sparse temporary file of 64 MiB and writes to it: on a full filesystem that is a SIGBUS."""

import mmap
import tempfile

with tempfile.TemporaryFile() as file:
    file.truncate(64 << 20)
    with mmap.mmap(file.fileno(), 64 << 20) as mapped:
        for offset in range(0, 64 << 20, 4096):
            mapped[offset] = 1
print("wrote")
