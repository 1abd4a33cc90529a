"""Every worker of a pool fills its own copy of a global array at its first task, or maps the file that the parent wrote.

    pool.py spawn|fork|executor fill|random|map MIB

When all tasks are done the workers' Private_Dirty is summed from smaps_rollup, a second way to count the copies.
"""

import concurrent.futures
import multiprocessing
import os
import sys
import tempfile
import time

import numpy

WORKERS = 4
GLOBAL_BUFFER = None


def work(task):
    global GLOBAL_BUFFER
    how, rows, path = task
    if GLOBAL_BUFFER is None:
        if how == "map":
            GLOBAL_BUFFER = numpy.load(path, mmap_mode="r")
        else:
            GLOBAL_BUFFER = filled(rows, os.getpid() if how == "random" else 1)
    time.sleep(0.3)
    return os.getpid(), float(GLOBAL_BUFFER[::1000].sum())


def filled(rows, seed):
    return numpy.random.default_rng(seed).random((rows, 128))


def private(pid):
    """Private_Dirty of a process, MiB."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:")) / 1024


def main():
    method, how, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 10
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "buffer.npy")
        if how == "map":
            numpy.save(path, filled(rows, 1))
        tasks = [(how, rows, path)] * (WORKERS * 6)
        if method == "executor":
            pool = concurrent.futures.ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn"))
            done = list(pool.map(work, tasks))
        else:
            pool = multiprocessing.get_context(method).Pool(WORKERS)
            done = pool.map(work, tasks, chunksize=1)
        sizes = [private(pid) for pid in {pid for pid, _ in done}]
        time.sleep(1.5)
        print(f"Private_Dirty of the workers: {sizes} MiB, together {sum(sizes):.0f}")
        if method == "executor":
            pool.shutdown()
        else:
            pool.terminate()


if __name__ == "__main__":
    main()
