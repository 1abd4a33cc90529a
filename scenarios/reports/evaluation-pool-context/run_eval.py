"""Evaluates the instances of a benchmark: a few of them here, to see that all is set up, and then all in a pool"""

import logging
import multiprocessing
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import harness

WORKERS, INSTANCES = 5, 40
logger = logging.getLogger("evaluation")


class Heartbeat(threading.Thread):
    """Tells the log now and then that the evaluation lives"""

    def __init__(self):
        super().__init__(daemon=True)
        self.stopped, self.done = threading.Event(), 0

    def run(self):
        while not self.stopped.wait(5):
            logger.info("alive, %d instances done", self.done)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    heartbeat = Heartbeat()
    heartbeat.start()
    for instance in range(12):
        logger.info("smoke test %s", harness.evaluate(instance, 1.7))
    # The heartbeat's thread may hold a lock at any time: children must not inherit it
    context = multiprocessing.get_context("spawn")
    started, resolved = time.monotonic(), 0
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        futures = [pool.submit(harness.evaluate, instance, 2.0) for instance in range(INSTANCES)]
        for future in as_completed(futures):
            result = future.result()
            heartbeat.done += 1
            resolved += result["resolved"]
            logger.info("instance %d: %d of %d", result["instance"], result["resolved"], result["tried"])
    heartbeat.stopped.set()
    logger.info("%d resolved in %.0f s", resolved, time.monotonic() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main())
