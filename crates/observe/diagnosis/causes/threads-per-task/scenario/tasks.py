"""A thread for each task that waits for ever (each), or one pool of eight (pool)."""

import concurrent.futures
import sys
import threading
import time

done = threading.Event()


def task():
    done.wait(0.01 if sys.argv[1] == "pool" else None)


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        for _ in range(int(sys.argv[2])):
            if sys.argv[1] == "pool":
                pool.submit(task)
            else:
                threading.Thread(target=task, daemon=True).start()
            time.sleep(0.05)
    print("threads", threading.active_count())
