"""An arbiter that loads the application and forks its sync workers"""

import argparse
import json
import os
import signal
import socket
import sys

import numpy as np

ITEMS, WIDTH = 460_000, 128


class Application:
    """Items like another one, by their embeddings"""

    def __init__(self):
        rng = np.random.default_rng(11)
        self.embeddings = np.empty((ITEMS, WIDTH), dtype=np.float32)
        for start in range(0, ITEMS, 20_000):
            part = self.embeddings[start : start + 20_000]
            rng.standard_normal(out=part, dtype=np.float32)
            part /= np.linalg.norm(part, axis=1, keepdims=True)

    def __call__(self, request):
        query = self.embeddings[request["item"] % ITEMS]
        scores = self.embeddings @ query
        best = np.argpartition(scores, -request["count"])[-request["count"] :]
        return {"items": [int(i) for i in best[np.argsort(-scores[best])]], "pid": os.getpid()}


def work(listener, application):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        connection, _ = listener.accept()
        with connection:
            line = connection.makefile().readline()
            if line:
                connection.sendall(json.dumps(application(json.loads(line))).encode() + b"\n")


class Arbiter:
    def __init__(self, listener, application, count):
        self.listener, self.application, self.count = listener, application, count
        self.workers = set()

    def spawn(self):
        pid = os.fork()
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                work(self.listener, self.application)
            finally:
                os._exit(1)
        self.workers.add(pid)
        print(f"Booting worker with pid: {pid}", flush=True)

    def run(self):
        for _ in range(self.count):
            self.spawn()
        while True:
            arrived = signal.sigwait({signal.SIGTERM, signal.SIGCHLD})
            if arrived == signal.SIGTERM:
                break
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in self.workers:
                print(f"worker {pid} is gone: {status}", flush=True)
                self.workers.discard(pid)
                self.spawn()
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        for pid in self.workers:
            os.waitpid(pid, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    application = Application()
    with open(arguments.port_file, "w") as file:
        file.write(f"{listener.getsockname()[1]}\n")
    Arbiter(listener, application, arguments.workers).run()


if __name__ == "__main__":
    sys.exit(main())
