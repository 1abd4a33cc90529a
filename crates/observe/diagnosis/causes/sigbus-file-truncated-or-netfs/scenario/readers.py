"""A worker reads a mapped file of 64 MiB; after three seconds it is written anew: in place, or beside and renamed."""

import mmap
import multiprocessing
import os
import sys
import time

SIZE = 64 << 20


def write(path, size):
    with open(path, "wb") as file:
        file.write(b"\1" * size)


def read(path, seconds):
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for offset in range(0, len(data), 1 << 20):
            total += data[offset]
        time.sleep(0.05)
    print("read", total)


if __name__ == "__main__":
    write("data", SIZE)
    worker = multiprocessing.get_context("fork").Process(target=read, args=("data", 6))
    worker.start()
    time.sleep(3)
    if sys.argv[1] == "in-place":
        write("data", SIZE // 16)
    else:
        write("data.new", SIZE // 16)
        os.replace("data.new", "data")
    worker.join()
    sys.exit(0 if worker.exitcode == 0 else 1)
