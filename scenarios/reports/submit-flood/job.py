"""Many producer threads submit documents to one ProcessPoolExecutor, which takes them all and works them off slowly."""

import hashlib
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor

PRODUCERS = 24
SECONDS = 26


def extract_features(document: bytes) -> int:
    digest = document
    for _ in range(600):
        digest = hashlib.sha256(document[:200_000] + digest[:32]).digest()
    return digest[0]


class Ingest:
    def __init__(self):
        self.executor = ProcessPoolExecutor(max_workers=2)
        self.lock = threading.Lock()
        self.done = 0
        self.total = 0
        self.stop = threading.Event()

    def finished(self, future):
        if future.cancelled():
            return
        with self.lock:
            self.done += 1
            self.total += future.result()

    def fetch(self, feed, n):
        """A page of the feed: what a slow server sends."""
        time.sleep(0.28)
        return os.urandom(4096) * 64 + f"{feed}/{n}".encode()

    def producer(self, feed):
        n = 0
        while not self.stop.is_set():
            document = self.fetch(feed, n)
            self.executor.submit(extract_features, document).add_done_callback(self.finished)
            n += 1

    def run(self):
        threads = [threading.Thread(target=self.producer, args=(feed,), daemon=True) for feed in range(PRODUCERS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        while time.monotonic() - began < SECONDS:
            time.sleep(1)
            print(f"{time.monotonic() - began:4.0f} s, {self.done} documents done", flush=True)
        self.stop.set()
        for thread in threads:
            thread.join()
        self.executor.shutdown(wait=True, cancel_futures=True)
        print("features", self.total)


if __name__ == "__main__":
    Ingest().run()
