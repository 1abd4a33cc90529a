"""Starts a process for each shard of the shuffle, with its part of the memory of the worker"""

import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
SHARDS, WORKER_MEMORY = 2, 640 << 20


def watch(shard, process, statuses):
    for line in process.stdout:
        print(line.strip(), flush=True)
    statuses[shard] = process.wait()


def main():
    environment, statuses = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}, {}
    with tempfile.TemporaryDirectory() as folder:
        watchers = []
        for shard in range(SHARDS):
            command = [sys.executable, os.path.join(HERE, "shard.py"), folder, str(shard), str(WORKER_MEMORY // SHARDS)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            watchers.append(threading.Thread(target=watch, args=(shard, process, statuses)))
            watchers[-1].start()
        for watcher in watchers:
            watcher.join()
    return max(map(abs, statuses.values()))


if __name__ == "__main__":
    sys.exit(main())
