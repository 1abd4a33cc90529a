"""The cache of preprocessed multimodal inputs: one on each side, with the same size and the same order of entries"""

import collections
import os

CAPACITY = int(os.environ.get("MM_INPUT_CACHE_MIB", "4096")) << 20


class MirroredProcessingCache:
    def __init__(self, capacity=CAPACITY):
        self.capacity, self.size = capacity, 0
        self.entries = collections.OrderedDict()

    def get(self, mm_hash):
        entry = self.entries.get(mm_hash)
        if entry is not None:
            self.entries.move_to_end(mm_hash)
        return entry

    def put(self, mm_hash, tensor):
        size = tensor.numel() * tensor.element_size()
        while self.entries and self.size + size > self.capacity:
            _, oldest = self.entries.popitem(last=False)
            self.size -= oldest.numel() * oldest.element_size()
        self.entries[mm_hash] = tensor
        self.size += size
