"""Healthy: an executor of twelve workers that starts them one by one as tasks come, and keeps them."""

import time
from concurrent.futures import ProcessPoolExecutor


def task(n):
    return sum(k * k for k in range(400_000)) + n


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=12) as executor:
        waiting = []
        for n in range(60):
            waiting.append(executor.submit(task, n))
            time.sleep(0.15)
        print(sum(future.result() for future in waiting))
