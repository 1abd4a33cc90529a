"""Threads that each fill blocks, let go of all but one, and live on: `threads.py growing|steady SECONDS`.

growing: a thread for each request, one after the other. steady: a pool that does the same over and over.
"""

import sys
import threading
import time

SIZE = 60_000
BLOCKS = 700  # 40 MiB
THREADS = 14

kept = []
over = threading.Event()


def request():
    blocks = [b"x" * (SIZE + number % 7) for number in range(BLOCKS)]
    kept.append(blocks[-1])


def once():
    request()
    over.wait()


def again():
    while not over.wait(1.0):
        request()
        kept.pop(0)


if __name__ == "__main__":
    how, seconds = sys.argv[1], float(sys.argv[2])
    end = time.monotonic() + seconds
    for number in range(THREADS):
        threading.Thread(target=once if how == "growing" else again).start()
        time.sleep(seconds / THREADS if how == "growing" else 0.1)
    while time.monotonic() < end:
        time.sleep(0.2)
    over.set()
