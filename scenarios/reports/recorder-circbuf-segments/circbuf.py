"""Circular buffers that are mapped twice in a row, so that a block sees its items in one piece at any offset"""

import ctypes
import mmap
import os
import sys

import numpy as np

IPC_PRIVATE, IPC_CREAT, IPC_RMID, SHM_RDONLY = 0, 0o1000, 0, 0o10000
PAGE = mmap.PAGESIZE

libc = ctypes.CDLL(None, use_errno=True)
libc.shmget.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_int)
libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = (ctypes.c_void_p,)
libc.shmctl.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
FAILED = ctypes.c_void_p(-1).value


def say(call):
    print(f"vmcircbuf_sysv_shm :error: {call}: {os.strerror(ctypes.get_errno())}", file=sys.stderr, flush=True)


class Segment:
    """A segment that goes with its last mapping"""

    def __init__(self, size, step):
        self.identifier = libc.shmget(IPC_PRIVATE, size, IPC_CREAT | 0o700)
        if self.identifier < 0:
            say(f"shmget ({step})")
            raise MemoryError("allocate_buffer: failed to allocate a buffer")

    def attach(self, address, flags=0):
        found = libc.shmat(self.identifier, address, flags)
        if found == FAILED:
            say("shmat")
            raise MemoryError("allocate_buffer: failed to map a buffer")
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        libc.shmctl(self.identifier, IPC_RMID, None)


class CircularBuffer:
    def __init__(self, items):
        self.items, self.written, self.taken = items, 0, 0
        size = items * np.dtype(np.complex64).itemsize
        with Segment(PAGE, 1) as guard:
            with Segment(2 * size + 2 * PAGE, 2) as area:
                base = area.attach(None)
            libc.shmdt(base)
            with Segment(size, 3) as buffer:
                guard.attach(base, SHM_RDONLY)
                buffer.attach(base + PAGE)
                buffer.attach(base + PAGE + size)
                guard.attach(base + PAGE + 2 * size, SHM_RDONLY)
        memory = (ctypes.c_char * (2 * size)).from_address(base + PAGE)
        self.view = np.frombuffer(memory, np.complex64)

    def write(self, samples):
        start = self.written % self.items
        self.view[start:start + len(samples)] = samples
        self.written += len(samples)

    def take(self, count):
        start = self.taken % self.items
        self.taken += count
        return self.view[start:start + count]
