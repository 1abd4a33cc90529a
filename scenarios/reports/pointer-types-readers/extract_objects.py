"""Reads the objects of documents through the library's file access callbacks, and describes them"""

import ctypes
import os
import tempfile
import time
import zlib

import numpy as np

RUN_S = 32
FILE_BYTES = 8 << 20
OBJECTS = 60
SHORTEST, LONGEST = 2_000, 1_000_000
SAMPLED = 16_384

GetBlock = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_ulong
)


class FileAccess(ctypes.Structure):
    _fields_ = [("m_FileLen", ctypes.c_ulong), ("m_GetBlock", GetBlock), ("m_Param", ctypes.c_void_p)]


class BufferReader:
    """What the library calls when it wants a block of the file"""

    def __init__(self, file):
        self.file = file

    def __call__(self, _param, position, data, size):
        block = ctypes.cast(data, ctypes.POINTER(ctypes.c_ubyte * size))
        self.file.seek(position)
        return int(self.file.readinto(block.contents) == size)


class Document:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.access = FileAccess(os.path.getsize(path), GetBlock(BufferReader(self.file)), None)

    def read(self, position, size, destination):
        pointer = ctypes.cast(destination, ctypes.POINTER(ctypes.c_ubyte))
        if not self.access.m_GetBlock(None, position, pointer, size):
            raise OSError(f"no block of {size} bytes at {position}")
        return np.frombuffer(destination, dtype=np.uint8, count=size)

    def close(self):
        self.access = None
        self.file.close()


def describe(block):
    counts = np.bincount(block[:SAMPLED], minlength=256).astype(np.float64)
    share = counts[counts > 0] / counts.sum()
    return zlib.crc32(block[:SAMPLED]), float(-(share * np.log2(share)).sum())


def write_document(folder):
    path = os.path.join(folder, "collection.pdf")
    generator = np.random.default_rng(3)
    with open(path, "wb") as file:
        file.write(generator.integers(0, 200, FILE_BYTES, dtype=np.uint8).tobytes())
    return path


def main():
    generator = np.random.default_rng(11)
    destination = (ctypes.c_ubyte * LONGEST)()
    with tempfile.TemporaryDirectory() as folder:
        path = write_document(folder)
        end, documents, entropy, checksum = time.monotonic() + RUN_S, 0, 0.0, 0
        while time.monotonic() < end:
            document = Document(path)
            sizes = generator.integers(SHORTEST, LONGEST, OBJECTS).tolist()
            for size in sizes:
                position = int(generator.integers(0, FILE_BYTES - size))
                code, bits = describe(document.read(position, size, destination))
                checksum ^= code
                entropy += bits / OBJECTS
            document.close()
            documents += 1
            if documents % 200 == 0:
                print(f"{documents} documents, {entropy / documents:.3f} bits, {checksum:08x}", flush=True)
    print(f"done: {documents} documents", flush=True)


if __name__ == "__main__":
    main()
