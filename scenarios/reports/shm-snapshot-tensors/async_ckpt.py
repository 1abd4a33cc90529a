"""Checkpoints that a persistent worker writes from shared memory, while the training goes on"""

import collections
import os
import zlib

import torch
import torch.multiprocessing as multiprocessing

BLOCK = 1 << 20


def write(folder, call_idx, tensors):
    """One file with all tensors, and their checksum"""
    path, checksum = os.path.join(folder, f"iter_{call_idx:07d}.bin"), 0
    with open(path, "wb") as file:
        for tensor in tensors:
            data = memoryview(tensor.numpy().reshape(-1)).cast("B")
            for start in range(0, len(data), BLOCK):
                checksum = zlib.crc32(data[start : start + BLOCK], checksum)
                file.write(data[start : start + BLOCK])
        file.flush()
        os.fsync(file.fileno())
    return path, checksum


def async_loop(requests, finished, folder, keep):
    torch.set_num_threads(1)
    tensors, written = None, collections.deque()
    while (request := requests.get()) is not None:
        call_idx, new_tensors = request
        if new_tensors is not None:
            tensors = new_tensors
        path, checksum = write(folder, call_idx, tensors)
        written.append(path)
        while len(written) > keep:
            os.remove(written.popleft())
        finished.put((call_idx, checksum))


class PersistentAsyncCaller:
    def __init__(self, folder, keep=2):
        context = multiprocessing.get_context("spawn")
        self.requests, self.finished = context.Queue(), context.Queue()
        arguments = (self.requests, self.finished, folder, keep)
        self.process = context.Process(target=async_loop, args=arguments, name="async_ckpt")
        self.process.start()
        self.shm_tensors, self.pending, self.call_idx = None, 0, 0

    def drain(self):
        """Waits until the worker has written what it was given"""
        while self.pending:
            call_idx, checksum = self.finished.get()
            self.pending -= 1
            print(f"checkpoint {call_idx} is written, checksum {checksum:08x}", flush=True)

    @torch.no_grad()
    def schedule_async_request(self, tensors):
        self.drain()
        new = None
        if self.shm_tensors is None:
            self.shm_tensors = new = [torch.empty_like(tensor, device="cpu").share_memory_() for tensor in tensors]
        for shm_tensor, tensor in zip(self.shm_tensors, tensors):
            shm_tensor.copy_(tensor)
        self.requests.put((self.call_idx, new))
        self.pending, self.call_idx = self.pending + 1, self.call_idx + 1

    def close(self):
        self.drain()
        self.requests.put(None)
        self.process.join()
