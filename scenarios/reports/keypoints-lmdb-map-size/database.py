"""What the script uses of the data base: a file that is mapped with its largest size, and filled from the front"""

import mmap
import os
import struct

HEAD = struct.Struct("<IQ")


class Environment:
    def __init__(self, folder, map_size):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "data.mdb"), "w+b")
        self.file.truncate(map_size)
        self.map = mmap.mmap(self.file.fileno(), map_size)
        self.used = 0

    def put(self, key, value):
        for part in (HEAD.pack(len(key), len(value)), key, value):
            self.map[self.used : self.used + len(part)] = part
            self.used += len(part)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.map.flush()
        self.map.close()
        self.file.truncate(self.used)
        self.file.close()
