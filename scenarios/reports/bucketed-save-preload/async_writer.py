"""Writes the shards of a checkpoint in buckets: to host memory first, then serialised by threads, then to files"""

import io
import os
from concurrent.futures import ThreadPoolExecutor

import torch


class FileSystemWriterAsync:
    def __init__(self, path, thread_count):
        self.path, self.thread_count = path, thread_count
        os.makedirs(path, exist_ok=True)

    def split_by_size(self, state):
        """One bucket of tensors for each thread, of about the same size"""
        buckets, sizes = [{} for _ in range(self.thread_count)], [0] * self.thread_count
        for name, tensor in sorted(state.items(), key=lambda item: -item[1].numel()):
            smallest = sizes.index(min(sizes))
            buckets[smallest][name] = tensor
            sizes[smallest] += tensor.numel()
        return buckets

    @staticmethod
    def preload_tensors(buckets):
        """Independent of the next optimizer step from here on"""
        return [{name: tensor.detach().clone() for name, tensor in bucket.items()} for bucket in buckets]

    @staticmethod
    def serialise(bucket):
        stream = io.BytesIO()
        torch.save(bucket, stream)
        return stream

    def execute_sync(self, iteration, state):
        staged = self.preload_tensors(self.split_by_size(state))
        with ThreadPoolExecutor(self.thread_count) as threads:
            streams = list(threads.map(self.serialise, staged))
        written = 0
        for number, stream in enumerate(streams):
            name = os.path.join(self.path, f"iter_{iteration:07d}_{number}.distcp")
            with open(name + ".tmp", "wb") as file:
                written += file.write(stream.getbuffer())
            os.rename(name + ".tmp", name)
        return written
