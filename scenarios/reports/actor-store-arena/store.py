"""An object store that a driver and its actors map: objects lie one behind the other in an arena of a fixed size"""

import mmap

import torch


class ObjectStore:
    def __init__(self, size):
        self.size, self.memory, self.next = size, mmap.mmap(-1, size), 0

    def put(self, tensor):
        """Copies the tensor to the next free place, at the start again when the end is reached"""
        size = tensor.numel() * tensor.element_size()
        if self.next + size > self.size:
            self.next = 0
        reference = (self.next, tuple(tensor.shape))
        self.get(reference).copy_(tensor)
        self.next += (size + 63) // 64 * 64
        return reference

    def get(self, reference):
        offset, shape = reference
        count = 1
        for length in shape:
            count *= length
        return torch.frombuffer(self.memory, dtype=torch.float32, count=count, offset=offset).view(shape)
