"""Makes a lock between processes: a semaphore in /dev/shm."""

import multiprocessing
import time

time.sleep(1)
with multiprocessing.get_context("spawn").Lock():
    print("locked")
