"""What the script uses of a memory-mapped key-value store"""

import mmap
import os
import struct


class Environment:
    """A store of one file, which is mapped at its full size; records are appended, and found by their number"""

    def __init__(self, path, map_size):
        self.path, self.map_size, self.end, self.offsets = path, map_size, 0, {}
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.ftruncate(descriptor, map_size)
            self.map = mmap.mmap(descriptor, map_size)
        except OSError as error:
            raise MemoryError(f"{path}: {os.strerror(error.errno)}") from error
        finally:
            os.close(descriptor)

    def put(self, number, value):
        record = struct.pack("<II", number, len(value)) + value
        if self.end + len(record) > self.map_size:
            raise RuntimeError(f"{self.path}: Environment mapsize limit reached")
        self.map[self.end : self.end + len(record)] = record
        self.offsets[number] = self.end
        self.end += len(record)

    def get(self, number):
        offset = self.offsets[number]
        _, length = struct.unpack_from("<II", self.map, offset)
        return self.map[offset + 8 : offset + 8 + length]

    def close(self):
        self.map.close()
