"""Passes arrays from a worker process to its parent through one contiguous block, as in a ring"""

from dataclasses import dataclass
from multiprocessing import shared_memory

import numpy as np

HEADER = 128


@dataclass
class Marker:
    """Stands for an array in what goes through the queue"""

    start: int
    shape: tuple
    dtype: str


class RingArena:
    """Two cursors in bytes, which only grow: the writer's head and the reader's tail"""

    def __init__(self, capacity):
        self.capacity = capacity
        self.memory = shared_memory.SharedMemory(create=True, size=HEADER + capacity)
        self.cursors = np.ndarray(2, np.int64, self.memory.buf)
        self.cursors[:] = 0
        self.payload = np.ndarray(capacity, np.uint8, self.memory.buf, HEADER)

    def write(self, array):
        data, head = array.reshape(-1).view(np.uint8), int(self.cursors[0])
        if len(data) > self.capacity - (head - int(self.cursors[1])):
            raise BufferError(f"the arena of {self.capacity} bytes is too small for what is in flight")
        at = head % self.capacity
        first = min(len(data), self.capacity - at)
        self.payload[at : at + first] = data[:first]
        self.payload[: len(data) - first] = data[first:]
        self.cursors[0] = head + len(data)
        return Marker(head, array.shape, array.dtype.str)

    def read(self, marker):
        """A copy of the array; its place may be written again as soon as it is released"""
        array = np.empty(marker.shape, marker.dtype)
        data, at = array.reshape(-1).view(np.uint8), marker.start % self.capacity
        first = min(len(data), self.capacity - at)
        data[:first] = self.payload[at : at + first]
        data[first:] = self.payload[: len(data) - first]
        return array

    def release(self, marker):
        self.cursors[1] = marker.start + np.dtype(marker.dtype).itemsize * int(np.prod(marker.shape))

    def close(self):
        del self.cursors, self.payload
        self.memory.close()
        self.memory.unlink()
