"""A pool whose workers each make a global buffer of their own at the first task."""

import sys

import numpy as np
import torch
import torch.multiprocessing as mp

GLOBAL_BUFFER = None


def worker(data_size):
    global GLOBAL_BUFFER
    if GLOBAL_BUFFER is None:
        GLOBAL_BUFFER = np.random.rand(data_size, 100)
    return torch.tensor(GLOBAL_BUFFER)


def main(data_size, num_processes):
    with mp.Pool(processes=num_processes) as pool:
        pool.map(worker, [data_size] * num_processes)


if __name__ == "__main__":
    mp.set_start_method(sys.argv[1])
    main(1000, 4)
