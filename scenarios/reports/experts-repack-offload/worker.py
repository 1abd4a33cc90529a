"""A tensor parallel worker: loads the experts of its rank into host memory, and prepares them for the kernel"""

import os
import time

import numpy as np
import torch

torch.set_num_threads(1)
LAYERS, EXPERTS, ROWS, COLUMNS = 20, 16, 64, 5120
LOAD_S, REPACK_S = 0.85, 0.85
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def dequantize(packed):
    shifts = torch.arange(0, 32, 4, dtype=torch.int32).view(1, 8, 1)
    values = (packed.unsqueeze(1) >> shifts) & 15
    return (values.float() - 8).view(ROWS * 8, COLUMNS) * 0.02


class UVAOffloader:
    """Keeps parameters in host memory that the accelerator reads in place"""

    def __init__(self):
        self.buffers = []

    def offload(self, tensor):
        buffer = torch.empty_like(tensor)
        buffer.copy_(tensor)
        self.buffers.append(buffer)
        return buffer

    def total_gb(self):
        return sum(buffer.nbytes for buffer in self.buffers) / 1e9


class FusedExperts:
    def __init__(self, number):
        self.number = number
        self.weight = None

    def load(self, path, offloader):
        shard = torch.from_numpy(np.fromfile(path, dtype=np.int32)).view(EXPERTS, ROWS, COLUMNS)
        self.weight = offloader.offload(torch.roll(shard, self.number * WORLD + RANK, 0))

    def process_weights_after_loading(self):
        tiles = self.weight.view(EXPERTS, ROWS // 4, 4, COLUMNS // 16, 16)
        self.weight = tiles.permute(0, 3, 1, 4, 2).contiguous().view(EXPERTS, COLUMNS, ROWS)

    def scale_of(self, expert):
        weight = self.weight[expert].view(ROWS, COLUMNS)
        hidden = torch.ones(64, ROWS * 8)
        return (hidden @ dequantize(weight)).abs().mean().item()

    def check(self, seconds):
        until, expert, scale = time.monotonic() + seconds, 0, 0.0
        while time.monotonic() < until:
            scale = max(scale, self.scale_of(expert % EXPERTS))
            expert += 1
        return scale


def main():
    offloader = UVAOffloader()
    layers = [FusedExperts(number) for number in range(LAYERS)]
    started = time.monotonic()
    for layer in layers:
        layer.load(os.environ["MODEL_SHARD"], offloader)
        layer.check(LOAD_S)
    print(f"Total CPU offloaded parameters: {offloader.total_gb():.2f}", flush=True)
    print(f"Loading weights took {time.monotonic() - started:.2f} seconds", flush=True)
    print("Using MarlinExperts", flush=True)
    for layer in layers:
        layer.process_weights_after_loading()
        layer.check(REPACK_S)
    print("READY", flush=True)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
