"""Locks so many MiB of memory."""

import ctypes
import mmap
import os
import sys
import time

time.sleep(1.5)
size = int(sys.argv[1]) << 20
area = mmap.mmap(-1, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
if libc.mlock(address, size) != 0:
    raise OSError(ctypes.get_errno(), "mlock: " + os.strerror(ctypes.get_errno()))
print("locked", size)
