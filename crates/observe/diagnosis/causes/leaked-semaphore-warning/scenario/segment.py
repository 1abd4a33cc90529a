"""Makes a semaphore and a segment, says that it is ready, and waits to be killed; or removes both and ends (tidy)."""

import multiprocessing
import os
import sys
import time
from multiprocessing import shared_memory

lock = multiprocessing.get_context("spawn").Lock()
segment = shared_memory.SharedMemory(create=True, size=1 << 20)
segment.buf[:] = bytes(1 << 20)
time.sleep(2)
if sys.argv[1] == "tidy":
    segment.close()
    segment.unlink()
    sys.exit(0)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
