"""The allocator of the device: freed buffers are kept by their size"""

import torch


class BufferCache:
    def __init__(self):
        self.free_buffers, self.cached, self.peak = {}, 0, 0

    def empty(self, *shape):
        count = 1
        for size in shape:
            count *= size
        waiting = self.free_buffers.get(count)
        if waiting:
            self.cached -= 4 * count
            return waiting.pop().view(shape)
        return torch.empty(count).view(shape)

    def release(self, *tensors):
        for tensor in tensors:
            flat = tensor.view(-1)
            self.free_buffers.setdefault(flat.numel(), []).append(flat)
            self.cached += 4 * flat.numel()
        self.peak = max(self.peak, self.cached)

    def clear(self):
        self.free_buffers.clear()
        self.cached = 0
