"""Stores streams in chunks in a database file, or reads them chunk by chunk"""

import hashlib
import mmap
import os
import resource
import struct
import sys
import time

CHUNKS, CHUNK, PAGE = 420, 1 << 20, 4096
DOWNLOAD_S, CHUNK_S = 34.0, 0.02


class Environment:
    """A stand-in for LMDB: pages of values behind a meta page, which readers map"""

    def __init__(self, path, write):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT if write else os.O_RDONLY)
        self.map = None if write else mmap.mmap(self.fd, 0, access=mmap.ACCESS_READ)

    def begin(self):
        return Transaction(self)

    def meta(self):
        stored = os.pread(self.fd, 8, 0)
        return struct.unpack("<Q", stored)[0] if len(stored) == 8 else 0


class Transaction:
    def __init__(self, environment):
        self.environment = environment

    def __enter__(self):
        self.entries = self.environment.meta()
        return self

    def __exit__(self, *_):
        if self.environment.map is None:
            os.pwrite(self.environment.fd, struct.pack("<Q", self.entries), 0)

    def put(self, value):
        os.pwrite(self.environment.fd, value, PAGE + self.entries * CHUNK)
        self.entries += 1

    def get(self, number):
        if number >= self.entries:
            return None
        start = PAGE + number * CHUNK
        return self.environment.map[start : start + CHUNK]


def upload(path):
    environment = Environment(path, write=True)
    line = bytes(range(256)) * (CHUNK // 256)
    for chunk in range(CHUNKS):
        with environment.begin() as transaction:
            transaction.put(line[chunk % 256 :] + line[: chunk % 256])
    print(f"uploaded {CHUNKS} chunks", flush=True)


def download(path):
    environment = Environment(path, write=False)
    started, chunk, rounds = time.monotonic(), 0, 0
    digest = hashlib.sha256()
    while time.monotonic() - started < DOWNLOAD_S:
        with environment.begin() as transaction:
            data = transaction.get(chunk)
        if data is None:
            chunk, rounds = 0, rounds + 1
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"round {rounds}: {digest.hexdigest()[:16]}, maximum memory {peak} MB", flush=True)
            continue
        chunk += 1
        until = time.monotonic() + CHUNK_S
        while True:
            digest.update(data)
            if time.monotonic() > until:
                break


if __name__ == "__main__":
    {"upload": upload, "download": download}[sys.argv[1]](sys.argv[2])
