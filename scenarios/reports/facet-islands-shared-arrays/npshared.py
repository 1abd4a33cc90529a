"""Named arrays in shared memory, as files below /dev/shm that any process of the pipeline can map"""

import ctypes
import mmap
import os

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_FAILED = ctypes.c_void_p(-1).value
ROOT = f"/dev/shm/ddf.{os.getpid()}"


def create(name, shape, dtype):
    """A new array of zeros"""
    path = os.path.join(ROOT, name)
    count = int(np.prod(shape))
    size = count * np.dtype(dtype).itemsize
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(descriptor, size)
        address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
        if address is None or address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
    buffer = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(buffer, dtype=dtype, count=count).reshape(shape)


class SharedDict:
    """A dictionary whose arrays are shared; the path below it is part of the name"""

    def __init__(self, name):
        self.name, self.items = name, {}
        os.makedirs(os.path.join(ROOT, name), exist_ok=True)

    def add_array(self, key, shape, dtype=np.float32):
        array = create(f"{self.name}/{key}", shape, dtype)
        self.items[key] = array
        return array

    def __getitem__(self, key):
        return self.items[key]

    def __len__(self):
        return len(self.items)
