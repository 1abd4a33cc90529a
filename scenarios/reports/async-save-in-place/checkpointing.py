"""Checkpoints of a training, which are written in the background"""

import concurrent.futures
import json
import os
import shutil
import zlib

import torch


def flatten(state, prefix=""):
    flat = {}
    for key, value in state.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        elif isinstance(value, torch.Tensor):
            flat[f"{prefix}{key}"] = value
    return flat


def checksum(tensor):
    return zlib.crc32(memoryview(tensor.detach().contiguous().numpy().reshape(-1)).cast("B"))


class AsyncCheckpointer:
    def __init__(self, folder, keep=2):
        self.folder, self.keep = folder, keep
        self.executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self.future = None
        self.steps = []

    def async_save(self, state, step):
        self.wait()
        staged = {name: tensor.detach().to("cpu", non_blocking=True) for name, tensor in flatten(state).items()}
        metadata = {name: checksum(tensor) for name, tensor in staged.items()}
        self.future = self.executor.submit(self.write, staged, metadata, step)
        return self.future

    def write(self, staged, metadata, step):
        path = os.path.join(self.folder, f"step-{step}")
        os.makedirs(path)
        for name, tensor in staged.items():
            with open(os.path.join(path, f"{name}.pt"), "wb") as file:
                torch.save(tensor, file)
                file.flush()
                os.fsync(file.fileno())
        with open(os.path.join(path, ".metadata"), "w") as file:
            json.dump(metadata, file)
        self.steps.append(step)
        while len(self.steps) > self.keep:
            shutil.rmtree(os.path.join(self.folder, f"step-{self.steps.pop(0)}"))

    def wait(self):
        if self.future is not None:
            self.future.result()

    def load(self):
        """The tensors of the last checkpoint"""
        self.wait()
        path = os.path.join(self.folder, f"step-{self.steps[-1]}")
        with open(os.path.join(path, ".metadata")) as file:
            metadata = json.load(file)
        tensors = {}
        for name, expected in metadata.items():
            tensors[name] = torch.load(os.path.join(path, f"{name}.pt"))
            if checksum(tensors[name]) != expected:
                raise RuntimeError(f"checkpoint of step {self.steps[-1]} is corrupted: checksum of {name} differs")
        return tensors
