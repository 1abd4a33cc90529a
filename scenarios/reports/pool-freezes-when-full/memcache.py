"""A pool for decoded images that the workers of a loader share"""

import ctypes
import multiprocessing

import numpy as np


class MemCacheHandlerForMP:
    def __init__(self, size):
        self.size = size
        self.pool = multiprocessing.Array(ctypes.c_uint8, size, lock=False)
        self.manager = multiprocessing.Manager()
        self.addresses = self.manager.dict()
        self.used = multiprocessing.Value(ctypes.c_size_t, 0)
        self.frozen = multiprocessing.Value(ctypes.c_bool, False)
        self.lock = multiprocessing.Lock()

    def view(self):
        return np.frombuffer(self.pool, np.uint8)

    def get(self, key):
        address = self.addresses.get(key)
        if address is None:
            return None
        offset, shape = address
        count = int(np.prod(shape))
        return self.view()[offset : offset + count].reshape(shape)

    def put(self, key, image):
        if self.frozen.value:
            return
        with self.lock:
            offset = self.used.value
            if offset + image.nbytes > self.size:
                self.frozen.value = True
                return
            self.used.value = offset + image.nbytes
        self.view()[offset : offset + image.nbytes] = image.ravel()
        self.addresses[key] = (offset, image.shape)

    def __str__(self):
        share = 100 * self.used.value / self.size
        return f"uses {self.used.value} / {self.size} ({share:.1f}%) of the pool for {len(self.addresses)} items"

    def close(self):
        self.manager.shutdown()
