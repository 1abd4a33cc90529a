"""Convolutions over inputs of ever other lengths (varying), or of one (fixed)."""

import sys
import time

import torch

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Conv1d(64, 64, 3)
    end = time.monotonic() + float(sys.argv[2])
    steps = 0
    with torch.no_grad():
        while time.monotonic() < end:
            length = 200 + steps if sys.argv[1] == "varying" else 200
            model(torch.randn(1, 64, length))
            steps += 1
            time.sleep(0.004)
    print("steps", steps)
