"""So many forked processes touch the same shared 100 MiB; then it writes its pid into a file and waits."""

import ctypes
import mmap
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
area = mmap.mmap(-1, 100 << 20)
area.write(b"\1" * len(area))
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        # They go with their parent, as Slurm ends all of a job.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        total = sum(area[offset] for offset in range(0, len(area), 4096))
        time.sleep(8)
        os._exit(0 if total else 1)
time.sleep(4)
with open(sys.argv[1] + ".part", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(30)
