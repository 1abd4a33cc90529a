"""Exports weights in shards, in the background: a process pool writes what the trainer hands over."""

import ctypes
import json
import os
import signal
import zlib
from concurrent.futures import ProcessPoolExecutor

import torch

SHARD_BYTES = 12 << 20


def _start_saver():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a saver does not outlive its trainer
    torch.set_num_threads(1)


def _save_shard(folder, name, tensors):
    """Names, shapes and compressed data in one file."""
    os.makedirs(folder, exist_ok=True)
    index, offset = {}, 0
    with open(os.path.join(folder, name), "wb") as file:
        for key, tensor in tensors.items():
            data = zlib.compress(tensor.view(torch.uint8).numpy().tobytes(), 6)
            file.write(data)
            index[key] = [list(tensor.shape), offset, len(data)]
            offset += len(data)
        os.fsync(file.fileno())
    return index


class HfExport:
    def __init__(self, root, savers=1, keep=2):
        self.root, self.keep = root, keep
        self.executor = ProcessPoolExecutor(savers, initializer=_start_saver)
        self.indices = {}

    def save_hf(self, model, step):
        folder = os.path.join(self.root, f"hf-{step % self.keep}")
        shard, size, number = {}, 0, 0
        for key, parameter in model.named_parameters():
            tensor = parameter.detach().to(torch.bfloat16, copy=True).cpu()
            shard[key], size = tensor, size + tensor.nbytes
            if size >= SHARD_BYTES:
                self._submit(folder, number, shard)
                shard, size, number = {}, 0, number + 1
        if shard:
            self._submit(folder, number, shard)

    def _submit(self, folder, number, shard):
        name = f"model-{number:05d}.bin"
        future = self.executor.submit(_save_shard, folder, name, shard)
        future.add_done_callback(lambda done: self._finished(folder, name, done))

    def _finished(self, folder, name, done):
        self.indices[folder, name] = done.result()
        with open(os.path.join(folder, "index.json"), "w") as file:
            json.dump({n: i for (f, n), i in self.indices.items() if f == folder}, file)

    def close(self):
        self.executor.shutdown(wait=False, cancel_futures=True)
