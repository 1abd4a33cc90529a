"""Records of an event file: a length, a checksum and an encoded event"""

import json
import os
import struct
import zlib

HEAD = struct.Struct("<II")


class Writer:
    def __init__(self, folder):
        self.file = open(os.path.join(folder, f"events.{os.getpid()}"), "ab")

    def add(self, kind, tag, step, value):
        """A scalar as a number, or an image as bytes"""
        described = {"kind": kind, "tag": tag, "step": step}
        if kind == "scalars":
            described["value"], value = value, b""
        encoded = json.dumps(described).encode() + b"\n" + value
        self.file.write(HEAD.pack(len(encoded), zlib.crc32(encoded)) + encoded)

    def flush(self):
        self.file.flush()


class Reader:
    """Goes on where the last round has ended, and stops at a record that is not there in full"""

    def __init__(self, path):
        self.file = open(path, "rb")

    def load(self):
        while True:
            start = self.file.tell()
            head = self.file.read(HEAD.size)
            if len(head) < HEAD.size:
                break
            size, checksum = HEAD.unpack(head)
            encoded = self.file.read(size)
            if len(encoded) < size:
                break
            if zlib.crc32(encoded) != checksum:
                raise ValueError(f"{self.file.name}: a corrupt record at {start}")
            described, _, value = encoded.partition(b"\n")
            yield json.loads(described), value
        self.file.seek(start)
