"""A run that is killed together with torch's manager, so that its named segments stay: so many MiB of them."""

import os
import signal
import subprocess
import sys

import torch
import torch.multiprocessing

torch.multiprocessing.set_sharing_strategy("file_system")
kept = [torch.ones(4 << 20, dtype=torch.uint8).share_memory_() for _ in range(int(sys.argv[1]) // 4)]
managers = subprocess.run(["pgrep", "-P", str(os.getpid()), "torch_shm"], capture_output=True, text=True).stdout
for pid in managers.split():
    os.kill(int(pid), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
