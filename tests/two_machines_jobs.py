"""Small jobs whose behaviour depends on the machine: python two_machines_jobs.py NAME."""

import ctypes
import mmap
import sys
import threading
import time


def arenas():
    """Twelve threads that each take and free 800 pieces of 60 KB and keep one: glibc gives each an arena."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes, libc.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    together = threading.Barrier(12)

    def work():
        together.wait()
        pieces = [libc.malloc(60_000) for _ in range(800)]
        for piece in pieces:
            libc.memset(piece, 1, 60_000)
        together.wait()
        for piece in pieces[:-1]:
            libc.free(piece)
        together.wait()

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(2)


def huge():
    """Touches one byte of each 2 MiB of 256 MiB, and asks for huge pages as allocators do."""
    memory = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    for offset in range(0, 256 << 20, 2 << 20):
        memory[offset] = 1
    time.sleep(2)


def product():
    """A few products, so that torch starts its threads and loads what it computes with."""
    import torch

    matrix = torch.randn(800, 800)
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        matrix = (matrix @ matrix).tanh()
        time.sleep(0.05)


def promises():
    """Reserves 400 GiB, 1 GiB at a time, and touches none of it."""
    kept = []
    for _ in range(400):
        kept.append(mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        time.sleep(0.01)


if __name__ == "__main__":
    {"arenas": arenas, "huge": huge, "product": product, "promises": promises}[sys.argv[1]]()
