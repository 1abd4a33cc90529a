"""A pre-forking application server: documents and their metadata are loaded before the workers are forked."""

import argparse
import os
import random
import signal
import socket
import sys

DOCUMENTS = {}


def preload(count=400_000):
    """The documents of the site, with the fields of each, and who may read them."""
    rng = random.Random(0)
    for number in range(count):
        fields = {"name": f"INV-{number:07}", "total": rng.random() * 1000, "items": [rng.random(), rng.random()]}
        DOCUMENTS[number] = {"fields": fields, "roles": ["Accounts", f"user-{rng.randrange(10**6)}"], "owner": None}


def report(number, count=500):
    """Sums up a stretch of the documents, and lists them for the page."""
    first = number * 7919 % len(DOCUMENTS)
    rows = []
    for key in range(first, first + count):
        document = DOCUMENTS[key % len(DOCUMENTS)]
        fields = document["fields"]
        rows.append({"name": fields["name"], "total": fields["total"], "items": [{"rate": r} for r in fields["items"]]})
    return sum(row["total"] for row in rows)


def work(listener):
    session = bytearray(random.randbytes(28 << 20))  # the worker's own caches of templates and database rows
    while session:
        connection, _ = listener.accept()
        with connection:
            path = connection.makefile().readline().split()[1]
            connection.sendall(f"{report(int(path.rsplit('/', 1)[1])):.2f}\n".encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--preload", action="store_true")
    options = parser.parse_args()
    if options.preload:
        preload()
    workers = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options.path)
    listener.listen(64)
    for _ in range(options.workers):
        if (pid := os.fork()) == 0:
            work(listener)
        workers.append(pid)

    def stop(number, _):
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    pid, status = os.wait()
    workers.remove(pid)
    print(f"worker (pid {pid}) was sent signal {os.WTERMSIG(status)}! Perhaps out of memory?", flush=True)
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    sys.exit(3)


if __name__ == "__main__":
    main()
