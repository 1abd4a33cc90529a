"""A spawned Pool whose workers each fill a global buffer: large, and not a leak."""

import multiprocessing
import time

buffer = None


def fill(_):
    global buffer
    if buffer is None:
        buffer = bytearray(b"\1") * (64 << 20)
    time.sleep(0.1)
    return len(buffer)


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        print("bytes", sum(pool.map(fill, range(40), chunksize=1)))
