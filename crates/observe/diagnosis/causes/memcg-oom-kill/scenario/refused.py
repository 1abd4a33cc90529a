"""Writes 200 MiB into shared memory. Where the cgroup may kill nobody, the kernel refuses the write instead.

At the limit every new page of this process would wait for ever: what the failure needs is touched before.
"""

import os

memory = os.memfd_create("batches")
block = bytes(1 << 20)
try:
    os.write(-1, block)
except OSError as error:
    print("touched:", error, flush=True)
try:
    for _ in range(200):
        os.write(memory, block)
except OSError:
    os.close(memory)
    raise
