"""The same without torch: 100 small segments of multiprocessing.shared_memory."""

from multiprocessing import shared_memory

kept = []
try:
    for _ in range(100):
        kept.append(shared_memory.SharedMemory(create=True, size=64))
    print("shared", len(kept))
finally:
    for segment in kept:
        segment.close()
        segment.unlink()
