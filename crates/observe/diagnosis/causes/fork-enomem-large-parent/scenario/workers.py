"""Maps one and a half times the machine's memory in two halves, which the kernel joins, and starts a worker."""

import mmap
import multiprocessing
import os
import sys
import time


def work():
    print("works")


if __name__ == "__main__":
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 * 3
    kept = [mmap.mmap(-1, half, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2)]
    time.sleep(2)
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    worker.start()
    worker.join()
    print(len(kept), "mapped")
