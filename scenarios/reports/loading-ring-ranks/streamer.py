"""Streams the tensors of a checkpoint through a few buffers, which are read into again when a tensor was taken"""

import os
import queue
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


class RingStreamer:
    def __init__(self, folder, memory_limit, chunk, bandwidth):
        self.folder, self.chunk, self.bandwidth = folder, chunk, bandwidth
        self.free = queue.SimpleQueue()
        for _ in range(max(2, memory_limit // chunk)):
            self.free.put(bytearray(chunk))

    def _read(self, buffer, path, offset, size):
        """Fills a buffer, and checks it for as long as the storage would need to deliver it"""
        started, view = time.monotonic(), memoryview(buffer)[:size]
        with open(os.path.join(self.folder, path), "rb") as file:
            done = 0
            while done < size:
                done += os.preadv(file.fileno(), [view[done:]], offset + done)
        checksum = zlib.crc32(view)
        while time.monotonic() < started + size / self.bandwidth:
            if zlib.crc32(view) != checksum:
                raise OSError(f"{path} at {offset} differs")
        return buffer, size

    def stream(self, requests):
        """Yields (key, tensor): a view of a buffer that holds until the next one is asked for"""
        requests, pending = iter(requests), []
        with ThreadPoolExecutor(2) as readers:
            while True:
                while len(pending) < 2 and (request := next(requests, None)) is not None:
                    key, path, offset, size = request
                    pending.append((key, readers.submit(self._read, self.free.get(), path, offset, size)))
                if not pending:
                    return
                key, future = pending.pop(0)
                buffer, size = future.result()
                yield key, torch.from_numpy(np.frombuffer(buffer, np.float16, size // 2))
                self.free.put(buffer)
