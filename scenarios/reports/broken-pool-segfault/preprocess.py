"""Preprocessing of click logs in a pool: counts, categories and labels, chunk by chunk."""

import ctypes
import resource
from concurrent.futures import ProcessPoolExecutor

import numpy as np

CHUNKS = 200
ROWS = 60_000
BAD_CHUNK = 160

libc = ctypes.CDLL(None)
libc.strlen.argtypes = [ctypes.c_void_p]
libc.strlen.restype = ctypes.c_size_t


def read_chunk(number):
    rng = np.random.default_rng(number)
    dense = rng.lognormal(size=(ROWS, 13)).astype(np.float32)
    sparse = rng.integers(0, 2**31, (ROWS, 26), np.int64)
    return dense, sparse, None if number == BAD_CHUNK else ctypes.create_string_buffer(b"chunk %d" % number)


def preprocess(number):
    dense, sparse, header = read_chunk(number)
    # The library takes the header's address, and no chunk without one was tried.
    length = libc.strlen(ctypes.addressof(header) if header is not None else None)
    dense = np.log1p((dense - dense.min(0)) / (np.ptp(dense, axis=0) + 1e-6))
    hashed = (sparse * 2654435761 % 2**32) % 200_000
    counts = [np.unique(hashed[:, column], return_counts=True)[1].max() for column in range(hashed.shape[1])]
    return number, length, float(dense.mean()), int(max(counts))


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with ProcessPoolExecutor(max_workers=2) as executor:
        futures = [executor.submit(preprocess, number) for number in range(CHUNKS)]
        for future in futures:
            number, length, mean, most = future.result()
            if number % 10 == 0:
                print(f"chunk {number}: header of {length}, mean {mean:.3f}, {most} of one category", flush=True)


if __name__ == "__main__":
    main()
