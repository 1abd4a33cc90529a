"""A tensor parallel worker: reads each step's payload from the ring, and runs its part of the model"""

import json
import mmap
import os
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
RANK = int(os.environ["RANK"])


class Model:
    def __init__(self):
        torch.manual_seed(RANK)
        self.vision = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
        self.head = torch.nn.Linear(64, 500)

    @torch.inference_mode()
    def execute(self, payload, seconds):
        started, tokens = time.monotonic(), 0
        checksum = int(payload.sum(dtype=np.int64))
        patches = torch.from_numpy(payload[: 48 << 10].reshape(-1, 256)).float() / 255
        while tokens == 0 or time.monotonic() - started < seconds:
            logits = self.head(self.vision(patches).mean(0) + checksum % 7)
            patches[tokens % len(patches), 0] = float(logits.argmax()) / 500
            tokens += 1
        return tokens


def main():
    fd = os.open(sys.argv[1], os.O_RDWR)
    ring = mmap.mmap(fd, os.fstat(fd).st_size)
    os.close(fd)
    model = Model()
    print(json.dumps({"rank": RANK, "ready": True}), flush=True)
    for line in sys.stdin:
        step = json.loads(line)
        payload = np.frombuffer(ring, dtype=np.uint8, count=step["bytes"], offset=step["start"])
        tokens = model.execute(payload, step["seconds"])
        del payload
        print(json.dumps({"tokens": tokens}), flush=True)


if __name__ == "__main__":
    main()
