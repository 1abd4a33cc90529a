"""A scheduler of tasks: gives batches of tasks to workers over sockets, and logs every transition of a task"""

import argparse
import collections
import json
import os
import socketserver
import threading
import time

TRANSITION_LOG_LENGTH = 12_000
BATCH, DEPENDENTS = 16, 64


class State:
    def __init__(self):
        self.lock = threading.Lock()
        self.transition_log = collections.deque(maxlen=TRANSITION_LOG_LENGTH)
        self.processing, self.submitted, self.finished = {}, 0, 0

    def transition(self, key, start, finish):
        """Logs it together with what it recommends for the tasks that depend on this one"""
        recommendations = {f"('blockwise-sum-{key}', {number}, 0)": finish for number in range(DEPENDENTS)}
        self.transition_log.append((key, start, finish, recommendations, time.time()))

    def next_batch(self, worker):
        with self.lock:
            keys = []
            for _ in range(BATCH):
                key = f"map-overlap-{self.submitted:08d}"
                self.submitted += 1
                self.transition(key, "waiting", "processing")
                self.processing[key] = worker
                keys.append(key)
            return keys

    def finish(self, keys):
        with self.lock:
            for key in keys:
                del self.processing[key]
                self.transition(key, "processing", "memory")
            before = self.finished
            self.finished += len(keys)
            if before // 4000 != self.finished // 4000:
                print(f"{self.finished} tasks, {len(self.transition_log)} transitions in the log", flush=True)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        worker = f"tcp://127.0.0.1:{self.client_address[1]}"
        while line := self.rfile.readline():
            message = json.loads(line)
            self.server.state.finish(message["finished"])
            over = time.monotonic() > self.server.until
            keys = [] if over else self.server.state.next_batch(worker)
            self.wfile.write(json.dumps({"op": "close" if over else "compute", "keys": keys}).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduler-file", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.state, server.until = State(), time.monotonic() + arguments.seconds
        with open(arguments.scheduler_file + ".new", "w") as file:
            json.dump({"port": server.server_address[1]}, file)
        os.rename(arguments.scheduler_file + ".new", arguments.scheduler_file)
        threading.Timer(arguments.seconds + 3.0, server.shutdown).start()
        server.serve_forever(poll_interval=0.25)
    print(f"{server.state.finished} tasks", flush=True)


if __name__ == "__main__":
    main()
