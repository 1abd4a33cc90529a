"""Fills a segment of multiprocessing.shared_memory; where /dev/shm is smaller, that is a SIGBUS."""

from multiprocessing import shared_memory

segment = shared_memory.SharedMemory(create=True, size=32 << 20)
try:
    for offset in range(0, segment.size, 4096):
        segment.buf[offset] = 1
    print("filled", segment.size)
finally:
    segment.close()
    segment.unlink()
