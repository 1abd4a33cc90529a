"""Keys and values that do not fit on the device, in a region of /dev/shm that the workers of an engine share"""

import collections
import mmap
import os
import uuid

import torch

MADV_POPULATE_WRITE = 23


class SharedOffloadRegion:
    def __init__(self, size, engine_id=None):
        self.path = f"/dev/shm/vllm_offload_{engine_id or uuid.uuid4()}.mmap"
        fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.ftruncate(fd, size)
        self.mmap_obj = mmap.mmap(fd, size)
        os.close(fd)
        print(f"created mmap file {self.path} ({size >> 20} MiB)", flush=True)
        self.mmap_obj.madvise(MADV_POPULATE_WRITE)

    def cleanup(self):
        self.mmap_obj.close()
        os.unlink(self.path)


class OffloadManager:
    """Which block of the region has the keys and values of which prompt; the least recently used goes first"""

    def __init__(self, region, block_shape):
        count = 1
        for length in block_shape:
            count *= length
        self.blocks = len(region.mmap_obj) // (4 * count)
        flat = torch.frombuffer(region.mmap_obj, dtype=torch.float32, count=self.blocks * count)
        self.tensor = flat.view(self.blocks, *block_shape)
        self.used = collections.OrderedDict()

    def store(self, key, keys_values):
        if len(self.used) < self.blocks:
            block = len(self.used)
        else:
            _, block = self.used.popitem(last=False)
        self.tensor[block].copy_(keys_values)
        self.used[key] = block

    def load(self, key):
        block = self.used.get(key)
        if block is None:
            return None
        self.used.move_to_end(key)
        return self.tensor[block].clone()
