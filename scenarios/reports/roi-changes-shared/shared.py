"""An array in shared memory"""

from multiprocessing.shared_memory import SharedMemory

import numpy as np


class SharedNDArray:
    def __init__(self, shape, dtype, name=None):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        self.memory = SharedMemory(name=name, create=name is None, size=size if name is None else 0)
        self.array = np.ndarray(self.shape, self.dtype, buffer=self.memory.buf)

    @property
    def name(self):
        return self.memory.name

    def close(self):
        self.array = None
        self.memory.close()

    def unlink(self):
        self.memory.unlink()
