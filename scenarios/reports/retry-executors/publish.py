"""Publishes repositories: checks the units of each, with retries, and signs its metadata."""

import argparse
import concurrent.futures
import hashlib
import queue
import random
import threading
import zlib


class RetryExecutor(concurrent.futures.Executor):
    """Delegates to another executor, and submits again what failed there."""

    def __init__(self, delegate, attempts=4):
        self._delegate = delegate
        self._attempts = attempts
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._submit_loop, name="RetryExecutor", daemon=True)
        self._thread.start()

    def submit(self, function, *args):
        future = concurrent.futures.Future()
        self._jobs.put((future, function, args, 1))
        return future

    def _submit_loop(self):
        while (job := self._jobs.get()) is not None:
            self._delegate.submit(self._attempt, *job)

    def _attempt(self, future, function, args, attempt):
        try:
            future.set_result(function(*args))
        except OSError as error:
            if attempt == self._attempts:
                future.set_exception(error)
            else:
                self._jobs.put((future, function, args, attempt + 1))

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._jobs.put(None)
        self._delegate.shutdown(wait, cancel_futures=cancel_futures)


class Connection(threading.local):
    """A connection of each thread, with its receive buffer."""

    def __init__(self):
        self.buffer = bytearray(random.randbytes(384_000))

    def fetch(self, unit):
        if random.random() < 0.05:
            raise OSError(f"unit {unit}: connection reset by peer")
        start = unit * 977 % 300_000
        return zlib.compress(self.buffer[start : start + 60_000], 6)


CONNECTION = Connection()


def check_unit(unit):
    return hashlib.sha256(CONNECTION.fetch(unit)).hexdigest()


class Client:
    def __init__(self, repository):
        self.repository = repository
        self._executor = RetryExecutor(concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="pulp"))

    def publish(self, units=46):
        futures = [self._executor.submit(check_unit, self.repository * 31 + unit) for unit in range(units)]
        digests = "".join(future.result() for future in futures)
        return hashlib.pbkdf2_hmac("sha256", digests.encode(), b"key", 80_000).hex()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repositories", type=int, required=True)
    random.seed(0)
    for repository in range(parser.parse_args().repositories):
        signature = Client(repository).publish()
        if repository % 30 == 0:
            print(f"repository {repository}: {signature[:16]}", flush=True)


if __name__ == "__main__":
    main()
