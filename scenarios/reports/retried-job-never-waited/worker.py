"""A worker of a job queue, which performs each job in a process of its own"""

import hashlib
import json
import os
import random
import select
import time
import zlib

from queue_backend import Backend

SLOTS, SECONDS, POLL_S, TIDY_S = 4, 90.0, 0.3, 0.08


def packed_feed(name):
    source = random.Random(name)
    items = [
        {"id": number, "title": source.randbytes(24).hex(), "text": source.randbytes(180).hex()}
        for number in range(120)
    ]
    return zlib.compress(json.dumps(items).encode())


def parse(packed):
    digest = hashlib.sha256()
    for item in json.loads(zlib.decompress(packed)):
        digest.update(f"{item['id']} {item['title']} {item['text']}".encode())
    return digest.hexdigest()


class Job:
    """A job, and the process that performs it"""

    def __init__(self, worker, job_id, feed):
        self.worker, self.id, self.feed, self.pid = worker, job_id, feed, None

    def start(self):
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self.perform()
                status = 0
            finally:
                os._exit(status)
        return self

    def is_finished(self):
        pid, _ = os.waitpid(self.pid, os.WNOHANG)
        return pid == self.pid

    def perform(self):
        backend, packed = Backend(self.worker.backend.path), packed_feed(self.feed)
        seen, until = set(), time.monotonic() + POLL_S
        while time.monotonic() < until:
            seen.add(parse(packed))
        backend.retry(self.id, delay=-1)
        self.worker.notify()
        until = time.monotonic() + TIDY_S
        while time.monotonic() < until:
            seen.add(parse(packed))


class Worker:
    def __init__(self, backend):
        self.backend, self.jobs, self.performed = backend, {}, 0
        self.wakes, self.wake = os.pipe()

    def notify(self):
        os.write(self.wake, b"!")

    def wait(self):
        ready, _, _ = select.select([self.wakes], [], [], 0.5)
        if ready:
            os.read(self.wakes, 4096)

    def run(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for job_id in [job_id for job_id, job in self.jobs.items() if job.is_finished()]:
                del self.jobs[job_id]
            while len(self.jobs) < SLOTS and (found := self.backend.dequeue()) is not None:
                job_id, _, feed = found
                self.jobs[job_id] = Job(self, job_id, feed).start()
                self.performed += 1
                if self.performed % 20 == 0:
                    print(f"{self.performed} performed, {len(self.jobs)} active", flush=True)
            self.wait()


def main():
    backend = Backend("minion.db")
    for feed in ("releases", "advisories"):
        backend.enqueue("poll_feed", feed, attempts=100_000)
    worker = Worker(backend)
    worker.run(SECONDS)
    print(f"{worker.performed} performed; {backend.left()}", flush=True)


if __name__ == "__main__":
    main()
