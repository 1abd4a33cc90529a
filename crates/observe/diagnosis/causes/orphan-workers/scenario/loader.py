"""The trainer is killed. Workers of a forkserver watch the forkserver, not the trainer, and stay for ever."""

import os
import signal
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(16)


if __name__ == "__main__":
    begin = time.monotonic()
    for _ in DataLoader(Samples(), num_workers=2, multiprocessing_context="forkserver"):
        if time.monotonic() - begin > 6:
            if sys.argv[1] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            break
    print("done")
