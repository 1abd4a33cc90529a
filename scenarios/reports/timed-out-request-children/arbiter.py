"""An arbiter with two sync workers; a request computes in children of its worker, and may take too long"""

import json
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

torch.set_num_threads(1)
STARTED = time.monotonic()
LAST_S = 41.0  # the children of killed workers give up then, and the service ends a moment later
TIMEOUT_S = 3.0
WORKERS = 2


class Worker:
    def __init__(self, listener):
        self.listener = listener
        self.beat = tempfile.TemporaryFile()
        self.aborted = False
        self.pid = 0

    def notify(self):
        os.utime(self.beat.fileno())

    def run(self):
        signal.signal(signal.SIGABRT, lambda *_: sys.exit(1))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        self.listener.settimeout(1.0)
        while True:
            self.notify()
            try:
                connection, _ = self.listener.accept()
            except (TimeoutError, BlockingIOError):
                continue
            with connection:
                connection.settimeout(None)
                request = json.loads(connection.makefile().readline())
                answer = price(request)
                connection.sendall(json.dumps(answer).encode() + b"\n")


def simulate(tasks, results):
    """Scenarios of one half of a request after the other, as the parent puts them"""
    paths = np.full((32, 140_000), 100.0)
    while time.monotonic() - STARTED < LAST_S:
        try:
            seed, steps = tasks.get(timeout=1.0)
        except queue.Empty:
            continue
        generator = np.random.default_rng(seed)
        weights = torch.full((32,), 1 / 32)
        for step in range(steps):
            if time.monotonic() - STARTED > LAST_S:
                break
            paths[step % 32] *= np.exp(generator.standard_normal(paths.shape[1]) * 0.01)
            weights = torch.softmax(weights + torch.from_numpy(paths[:, step].copy()).float() * 1e-3, 0)
        results.put((float(paths.mean()), float(weights.max())))


def price(request):
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    children = [multiprocessing.Process(target=simulate, args=(tasks, results)) for _ in range(2)]
    for child in children:
        child.start()
    for half in range(2):
        tasks.put((request["seed"] + half, request["steps"]))
    answers = [results.get() for _ in children]
    for child in children:
        child.terminate()
        child.join()
    return {"price": sum(mean for mean, _ in answers) / len(answers)}


def spawn(listener):
    worker = Worker(listener)
    worker.notify()
    pid = os.fork()
    if pid == 0:
        worker.run()
    worker.pid = pid
    print(f"booting worker {pid}", flush=True)
    return worker


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    workers = {worker.pid: worker for worker in (spawn(listener) for _ in range(WORKERS))}
    here = os.path.dirname(os.path.abspath(__file__))
    upstream = subprocess.Popen(
        [sys.executable, os.path.join(here, "upstream.py"), str(listener.getsockname()[1]), "39"]
    )
    ended = multiprocessing.Event()
    while time.monotonic() - STARTED < LAST_S + 1.5:
        ended.wait(0.5)
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG) if workers else (0, 0)
            if pid == 0:
                break
            if workers.pop(pid, None) is not None:
                print(f"worker {pid} is gone", flush=True)
        for worker in list(workers.values()):
            if time.time() - os.fstat(worker.beat.fileno()).st_mtime > TIMEOUT_S:
                print(f"worker timeout (pid {worker.pid})", flush=True)
                os.kill(worker.pid, signal.SIGKILL if worker.aborted else signal.SIGABRT)
                worker.aborted = True
        while len(workers) < WORKERS:
            worker = spawn(listener)
            workers[worker.pid] = worker
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    for pid in workers:
        os.waitpid(pid, 0)
    upstream.poll()


if __name__ == "__main__":
    main()
