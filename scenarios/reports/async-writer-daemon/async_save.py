"""Saves while the training goes on: a process of its own writes what it finds in the buffers"""

import os

import torch
import torch.multiprocessing as mp

KEPT = 2


def write_loop(connection, folder):
    """The writer: first the buffers, then a step for each file"""
    torch.set_num_threads(1)
    buffers, written = connection.recv(), []
    while True:
        step = connection.recv()
        if step is None:
            break
        path = os.path.join(folder, f"step{step:05}.pt")
        with open(path + ".part", "wb") as file:
            torch.save(buffers, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
        written.append(path)
        while len(written) > KEPT:
            os.remove(written.pop(0))
        connection.send(step)


class AsyncSaver:
    def __init__(self, folder):
        self.folder = folder
        self.process, self.connection, self.buffers, self.pending = None, None, None, None

    def start(self, state):
        context = mp.get_context("spawn")
        self.buffers = {name: torch.empty_like(tensor).share_memory_() for name, tensor in state.items()}
        self.connection, other = context.Pipe()
        self.process = context.Process(target=write_loop, args=(other, self.folder), daemon=True)
        self.process.start()
        self.connection.send(self.buffers)

    def wait(self):
        if self.pending is not None:
            done = self.connection.recv()
            if done != self.pending:
                raise RuntimeError(f"step {self.pending} was to be written, not {done}")
            self.pending = None

    @torch.no_grad()
    def save(self, step, state):
        if self.process is None:
            self.start(state)
        self.wait()
        for name, tensor in state.items():
            self.buffers[name].copy_(tensor)
        self.connection.send(step)
        self.pending = step

    def close(self):
        self.wait()
        if self.process is not None:
            self.connection.send(None)
            self.process.join()
