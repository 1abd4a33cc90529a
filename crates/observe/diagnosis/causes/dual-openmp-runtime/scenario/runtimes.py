"""Loads OpenMP runtimes, and lets each run a parallel region's worth of threads."""

import ctypes
import sys
import time

if __name__ == "__main__":
    for name in sys.argv[1:]:
        ctypes.CDLL(name).omp_get_max_threads()
    time.sleep(3)
