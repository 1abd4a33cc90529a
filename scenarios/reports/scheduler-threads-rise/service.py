"""A monitoring service: a blocking scheduler runs the same job every so often in its default pool of threads"""

import collections
import queue
import threading
import time

import numpy as np
import torch

torch.set_num_threads(1)
SECONDS = 30.0
INTERVAL_S = 0.5
SAMPLES = 1 << 19
_local = threading.local()


class PoolExecutor:
    """Starts a thread for each submitted job until there are max_workers, and keeps them"""

    def __init__(self, max_workers=10, initializer=None):
        self.max_workers, self.initializer = max_workers, initializer
        self.tasks, self.threads = queue.Queue(), []

    def submit(self, function, *arguments):
        self.tasks.put((function, arguments))
        if len(self.threads) < self.max_workers:
            name = f"APScheduler-{len(self.threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self.threads.append(thread)

    def _work(self):
        if self.initializer is not None:
            self.initializer()
        while (task := self.tasks.get()) is not None:
            function, arguments = task
            function(*arguments)

    def shutdown(self):
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads:
            thread.join()


class BlockingScheduler:
    def __init__(self, executor):
        self.executor, self.jobs, self.stopped = executor, [], threading.Event()

    def add_job(self, function, seconds):
        self.jobs.append([time.monotonic(), seconds, function])

    def start(self, until):
        while time.monotonic() < until:
            for job in self.jobs:
                if job[0] <= time.monotonic():
                    self.executor.submit(job[2], threading.active_count())
                    job[0] += job[1]
            due = min(job[0] for job in self.jobs)
            self.stopped.wait(max(0.0, due - time.monotonic()))
        self.executor.shutdown()


def make_workspace():
    """Each thread's own buffers for the spectra"""
    _local.window = np.hanning(SAMPLES)
    _local.signal = np.zeros(SAMPLES)
    _local.power = np.zeros(SAMPLES // 2 + 1)
    _local.generator = np.random.default_rng(threading.get_ident() % 1000)


class Monitor:
    def __init__(self):
        self.recent = collections.deque(maxlen=50)
        self.ticks = 0

    def tick(self, threads):
        for _ in range(4):
            _local.signal[:] = _local.generator.standard_normal(SAMPLES)
            _local.signal *= _local.window
            spectrum = torch.fft.rfft(torch.from_numpy(_local.signal))
            torch.from_numpy(_local.power).mul_(0.8).add_(spectrum.abs().square(), alpha=0.2)
        self.recent.append(float(_local.power[100:200].sum()))
        self.ticks += 1
        print(f"tick {self.ticks}, thread count {threads}: {self.recent[-1]:.1f}", flush=True)


def main():
    monitor = Monitor()
    scheduler = BlockingScheduler(PoolExecutor(10, initializer=make_workspace))
    scheduler.add_job(monitor.tick, INTERVAL_S)
    scheduler.start(time.monotonic() + SECONDS)


if __name__ == "__main__":
    main()
