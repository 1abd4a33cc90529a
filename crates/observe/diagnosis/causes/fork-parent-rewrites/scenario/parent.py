"""The parent fills memory, frees it and fills it again; a forked child sleeps, started after the filling or before."""

import multiprocessing
import sys
import time


def sleep():
    """Where memory is short, it is the child that goes."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    time.sleep(12)


if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=sleep)
    if sys.argv[1] == "before":
        child.start()
    checkpoint = bytearray(b"\1") * (200 << 20)
    if sys.argv[1] == "after":
        child.start()
    time.sleep(3)
    del checkpoint
    time.sleep(3)
    model = bytearray(b"\1") * (200 << 20)
    time.sleep(2)
    child.terminate()
    child.join()
    print("bytes", len(model))
