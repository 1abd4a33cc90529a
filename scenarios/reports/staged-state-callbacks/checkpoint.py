"""Saves checkpoints in the background: the state is staged to memory, and written by a thread of the checkpointer."""

import concurrent.futures
import os

import torch


def stage(value):
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {key: stage(item) for key, item in value.items()}
    if isinstance(value, list):
        return [stage(item) for item in value]
    return value


def write(state_dict, path):
    torch.save(state_dict, path + ".tmp")
    os.replace(path + ".tmp", path)
    return path


class Checkpointer:
    def __init__(self, folder):
        self.folder = folder
        self.executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="checkpoint")

    def save_async(self, step, model, optimizer):
        """The future of the checkpoint's path; its callbacks run in the thread that wrote it."""
        state_dict = stage({"model": model.state_dict(), "optim": optimizer.state_dict()})
        return self.executor.submit(write, state_dict, os.path.join(self.folder, f"step{step}.pt"))

    def close(self):
        self.executor.shutdown()
