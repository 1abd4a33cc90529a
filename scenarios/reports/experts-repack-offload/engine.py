"""The core of the engine: starts a worker for each tensor parallel rank, and waits until they are ready"""

import os
import selectors
import subprocess
import sys
import tempfile

import numpy as np

TP = 2
EXPERTS, ROWS, COLUMNS = 16, 64, 5120


def write_shard(path):
    source = np.random.default_rng(0)
    source.integers(-(2**31), 2**31 - 1, EXPERTS * ROWS * COLUMNS, dtype=np.int32).tofile(path)


def start(rank, path):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(TP), "MODEL_SHARD": path}
    worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
    return subprocess.Popen([sys.executable, worker], env=environment, stdout=subprocess.PIPE, text=True)


def wait_ready(workers):
    waiting = selectors.DefaultSelector()
    for rank, worker in enumerate(workers):
        waiting.register(worker.stdout, selectors.EVENT_READ, rank)
    ready = set()
    while len(ready) < TP:
        for key, _ in waiting.select():
            line = key.fileobj.readline()
            if not line:
                waiting.unregister(key.fileobj)
                return {f"Worker_TP{key.data}": workers[key.data].wait()}
            if line.startswith("READY"):
                ready.add(key.data)
            else:
                print(f"(Worker_TP{key.data}) {line}", end="", flush=True)
    return {}


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "experts.bin")
        write_shard(path)
        workers = [start(rank, path) for rank in range(TP)]
        failed = wait_ready(workers)
        for worker in workers:
            worker.terminate()
            worker.wait()
    if failed:
        raise RuntimeError(f"Engine core initialization failed. See root cause above. Failed core proc(s): {failed}")


if __name__ == "__main__":
    main()
