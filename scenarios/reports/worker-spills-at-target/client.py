"""The client: submits tasks to a worker, and releases what it does not need any more"""

import json
import os
import subprocess
import sys
import tempfile
import time

SECONDS = 40.0
MEMORY_LIMIT, TARGET_FRACTION = 333 << 20, 0.6
NEAR, FAR, KEPT = 15, 34, 48


class Client:
    def __init__(self, folder):
        here = os.path.dirname(os.path.abspath(__file__))
        target = int(MEMORY_LIMIT * TARGET_FRACTION)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "worker.py"), folder, str(target)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, op, **arguments):
        self.process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    with tempfile.TemporaryDirectory(prefix="dask-worker-space-") as folder:
        client = Client(folder)
        started, number = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            answer = client.ask("compute", key=f"chunk-{number}", seed=number)
            for back in (NEAR, FAR):
                if number >= back:
                    client.ask("anomaly", key=f"chunk-{number}", reference=f"chunk-{number - back}")
            if number >= KEPT:
                client.ask("release", key=f"chunk-{number - KEPT}")
            number += 1
            if number % 20 == 0:
                print(f"{number} chunks, {answer['in_memory']} in memory, {answer['spilled']} spilled", flush=True)
        client.close()
    print(f"{number} chunks", flush=True)


if __name__ == "__main__":
    main()
