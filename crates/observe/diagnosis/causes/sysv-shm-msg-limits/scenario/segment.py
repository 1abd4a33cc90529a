"""Makes a segment of System V of so many MiB, fills it, and removes it, or leaves it behind."""

import ctypes
import sys
import time

IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]


def shmget(size):
    number = libc.shmget(IPC_PRIVATE, size, IPC_CREAT | 0o600)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget: Invalid argument")
    return number


time.sleep(1)
size = int(sys.argv[1]) << 20
segment = shmget(size)
address = libc.shmat(segment, None, 0)
ctypes.memset(address, 1, size)
time.sleep(2)
libc.shmdt(address)
if sys.argv[2] == "remove":
    libc.shmctl(segment, IPC_RMID, None)
