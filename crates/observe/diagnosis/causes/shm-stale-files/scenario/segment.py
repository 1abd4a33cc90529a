"""Fills a segment of multiprocessing.shared_memory after a second; where /dev/shm has less room, that is a SIGBUS."""

import time
from multiprocessing import shared_memory

time.sleep(1.5)
segment = shared_memory.SharedMemory(create=True, size=32 << 20)
try:
    for offset in range(0, segment.size, 4096):
        segment.buf[offset] = 1
    print("filled", segment.size)
finally:
    segment.close()
    segment.unlink()
