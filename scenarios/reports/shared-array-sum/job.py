"""Four processes sum one array in shared memory, several times over."""

import threading
from functools import partial
from multiprocessing import Pool, resource_tracker, shared_memory

import numpy as np

ITEMS = 60_000_000
PASSES = 45


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 >> 20


def f(shape, dtype, name, n):
    my_sm = shared_memory.SharedMemory(name=name)
    arr = np.ndarray(shape=shape, dtype=dtype, buffer=my_sm.buf)
    total, pause = 0.0, threading.Event()
    for number in range(PASSES):
        total += sum(np.sqrt(part).sum() for part in np.array_split(arr[n::4], 50))
        pause.wait(0.2)
        if number % 15 == 0:
            print(f"process {n}, pass {number}: {resident()} MiB resident", flush=True)
    del arr
    my_sm.close()
    return total / PASSES


def main():
    # Else each process of the pool has a tracker of its own, which removes the block as the process exits.
    resource_tracker.ensure_running()
    p = Pool(4)
    arr = np.random.default_rng(1).random(ITEMS)
    shm = shared_memory.SharedMemory(create=True, size=arr.nbytes)
    shm_arr = np.ndarray(shape=arr.shape, dtype=arr.dtype, buffer=shm.buf)
    shm_arr[:] = arr[:]
    del arr
    f_ = partial(f, shm_arr.shape, shm_arr.dtype, shm.name)
    print("sum", sum(p.map(f_, range(4), chunksize=1)))
    p.close()
    p.join()
    del shm_arr
    shm.close()
    shm.unlink()


if __name__ == "__main__":
    main()
