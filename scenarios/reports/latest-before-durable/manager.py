"""Saves and loads checkpoints: folders of one shard for each tensor, and their metadata"""

import concurrent.futures
import json
import os
import shutil
import zlib

import numpy as np
import torch

BLOCK = 1 << 18


class AsyncCheckpointer:
    """Stages the state, and lets a thread write it"""

    def __init__(self):
        self.executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="dcp")
        self.future = None

    def save(self, state, path):
        self.wait()
        staged = {name: tensor.detach().clone() for name, tensor in state.items()}
        self.future = self.executor.submit(self.write, staged, path)

    def write(self, staged, path):
        metadata = {}
        for name, tensor in staged.items():
            data = memoryview(tensor.numpy().reshape(-1)).cast("B")
            compressor = zlib.compressobj(6)
            with open(os.path.join(path, f"{name}.distcp"), "wb") as file:
                for start in range(0, len(data), BLOCK):
                    file.write(compressor.compress(data[start : start + BLOCK]))
                file.write(compressor.flush())
                file.flush()
                os.fsync(file.fileno())
            metadata[name] = list(tensor.shape)
        with open(os.path.join(path, ".metadata"), "w") as file:
            json.dump(metadata, file)

    def wait(self):
        if self.future is not None:
            self.future.result()
            self.future = None


class CheckpointManager:
    def __init__(self, folder, keep_last_n=1):
        self.folder, self.keep_last_n = folder, keep_last_n
        self.checkpointer = AsyncCheckpointer()
        os.makedirs(folder, exist_ok=True)

    def save(self, state, step):
        path = os.path.join(self.folder, f"step_{step:06d}")
        os.makedirs(path)
        self.checkpointer.save(state, path)
        with open(os.path.join(path, "metadata.json"), "w") as file:
            json.dump({"step": step}, file)
        self.update_latest(path)
        self.cleanup()

    def update_latest(self, path):
        link = os.path.join(self.folder, "latest")
        if os.path.lexists(link + ".new"):
            os.remove(link + ".new")
        os.symlink(os.path.basename(path), link + ".new")
        os.replace(link + ".new", link)
        print(f"latest -> {os.path.basename(path)}", flush=True)

    def cleanup(self):
        names = sorted(name for name in os.listdir(self.folder) if name.startswith("step_"))
        for name in names[: -self.keep_last_n]:
            shutil.rmtree(os.path.join(self.folder, name))

    def wait(self):
        self.checkpointer.wait()

    def read_metadata(self, path):
        try:
            with open(os.path.join(path, ".metadata")) as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def load(self, state):
        """Fills the state from the latest checkpoint, if there is one; the step to go on from"""
        path = os.path.join(self.folder, "latest")
        if not os.path.exists(path):
            return 0
        with open(os.path.join(path, "metadata.json")) as file:
            step = json.load(file)["step"]
        print(f"resuming from step {step}", flush=True)
        metadata = self.read_metadata(path)
        assert metadata is not None, "metadata is None"
        for name, shape in metadata.items():
            with open(os.path.join(path, f"{name}.distcp"), "rb") as file:
                data = bytearray(zlib.decompress(file.read()))
            state[name].copy_(torch.from_numpy(np.frombuffer(data, np.float32).reshape(shape)))
        return step
