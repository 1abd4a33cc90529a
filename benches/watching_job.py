"""Jobs that `watching.py` has watched: many processes, or many mappings, that mostly sit still.

Says `ready` and the pids of all its processes on a line once it stands, and ends when its standard input does.
"""

import ctypes
import json
import mmap
import os
import signal
import subprocess
import sys
import time

PAGE = mmap.PAGESIZE


def torch_parent():
    """A trainer before its first step: torch, a model, and 100 MB of records."""
    import torch

    torch.set_num_threads(1)
    held = [torch.nn.Linear(1024, 1024) for _ in range(16)]
    held.append([{"path": f"/data/{n:08d}.jpg", "label": n, "caption": f"number {n}"} for n in range(200_000)])
    return held


def forked(count, body):
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            body()
            os._exit(0)
        pids.append(pid)
    return pids


def work(records):
    """A worker that reads a few records ten times a second, and so copies their pages, slowly."""
    at = os.getpid() * 1000
    while True:
        for _ in range(50):
            at = (at + 7919) % len(records)
            len(records[at]["caption"])
        time.sleep(0.1)


def many_mappings(count):
    """One area cut into `count` mappings: neighbours of different rights are not merged."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    area = libc.mmap(None, count * PAGE, mmap.PROT_READ, flags, -1, 0)
    for page in range(0, count, 2):
        if libc.mprotect(area + page * PAGE, PAGE, 0) != 0:
            raise OSError(ctypes.get_errno(), f"mprotect of page {page}")


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    pids = [os.getpid()]
    if kind == "forked":
        torch_parent()
        pids += forked(count, signal.pause)
    elif kind == "working":
        records = torch_parent()[-1]
        pids += forked(count, lambda: work(records))
    elif kind == "plain":
        pids += [subprocess.Popen(["sleep", "1000000"]).pid for _ in range(count)]
    elif kind == "thousand":
        pids += forked(count, signal.pause)
    elif kind == "mappings":
        many_mappings(count)
    else:
        raise SystemExit(f"no such job: {kind}")
    print("ready", json.dumps(pids), flush=True)
    sys.stdin.read()
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
