"""The runner: opens the segments that the server owns, and leaves when its job is over."""

import sys
from multiprocessing import shared_memory

import numpy as np
import torch

shape = tuple(int(word) for word in sys.argv[3:])
segments = [shared_memory.SharedMemory(name) for name in sys.argv[1:3]]
frames_in, frames_out = (np.ndarray(shape, np.uint8, one.buf) for one in segments)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 24, 5, padding=2), torch.nn.SiLU(), torch.nn.Conv2d(24, 3, 5, padding=2))
with torch.no_grad():
    for line in sys.stdin:
        for number in range(shape[0]):
            frame = torch.from_numpy(frames_in[number].copy()).permute(2, 0, 1)[None].float() / 255
            for _ in range(2):
                frame = frame + 0.1 * model(frame)
            frames_out[number] = (frame[0].permute(1, 2, 0).clamp(0, 1) * 255).byte().numpy()
        print(f"request {int(line)} done", flush=True)
del frames_in, frames_out
for one in segments:
    one.close()
