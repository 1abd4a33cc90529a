"""Starts the broker, the worker and the producer of a docket, and waits for them"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def start(name, *arguments, **options):
    return subprocess.Popen([sys.executable, os.path.join(HERE, name), *arguments], **options)


def main():
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    broker = start("broker.py", stdout=subprocess.PIPE, text=True)
    port = broker.stdout.readline().strip()
    worker = start("worker.py", port)
    producer = start("producer.py", port)
    statuses = [producer.wait(), worker.wait()]
    broker.terminate()
    print(broker.stdout.read().strip(), flush=True)
    broker.wait()
    return max(map(abs, statuses))


if __name__ == "__main__":
    sys.exit(main())
