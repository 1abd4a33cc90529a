"""A worker: takes messages, runs their tasks in its processes, and waits for the time of those that have one"""

import collections
import heapq
import itertools
import json
import os
import selectors
import socket
import subprocess
import sys
import time

SECONDS, PREFETCH_MULTIPLIER = 75.0, 32


class Request:
    def __init__(self, tag, message):
        self.tag = tag
        self.id = message["id"]
        self.name = message["task"]
        self.args = message["args"]
        self.eta = message["eta"]


class Timer:
    def __init__(self):
        self.queue = []
        self.numbers = itertools.count()

    def call_at(self, eta, request):
        heapq.heappush(self.queue, (eta, next(self.numbers), request))

    def due(self):
        """The requests whose time has come"""
        while self.queue and self.queue[0][0] <= time.time():
            yield heapq.heappop(self.queue)[2]


class Pool:
    """Processes that run one task at a time"""

    def __init__(self, size, selector):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_task.py")
        self.processes = []
        self.running = {}
        for _ in range(size):
            process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            selector.register(process.stdout, selectors.EVENT_READ, process)
            self.processes.append(process)

    def free(self):
        return [process for process in self.processes if process.pid not in self.running]

    def run(self, process, request):
        self.running[process.pid] = request
        process.stdin.write(json.dumps({"name": request.name, "args": request.args}).encode() + b"\n")
        process.stdin.flush()

    def finish(self, process):
        """The request that a process is done with"""
        if not process.stdout.readline():
            raise RuntimeError(f"task process {process.pid} ended with {process.wait()}")
        return self.running.pop(process.pid)

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait()


class Worker:
    def __init__(self, port, concurrency):
        self.selector = selectors.DefaultSelector()
        self.pool = Pool(concurrency, self.selector)
        self.timer = Timer()
        self.reserved = collections.deque()
        self.prefetch = concurrency * PREFETCH_MULTIPLIER
        self.sent_prefetch = None
        self.done = 0
        self.rest = b""
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.selector.register(self.connection, selectors.EVENT_READ)

    def receive(self):
        data = self.connection.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection")
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            tag, _, body = line.partition(b" ")
            self.on_task_received(Request(int(tag), json.loads(body)))

    def on_task_received(self, request):
        if request.eta is None:
            self.reserved.append(request)
        else:
            self.prefetch += 1
            self.timer.call_at(request.eta, request)

    def apply_due(self):
        for request in self.timer.due():
            self.prefetch -= 1
            self.reserved.append(request)
        for process in self.pool.free():
            if self.reserved:
                self.pool.run(process, self.reserved.popleft())

    def step(self):
        if self.prefetch != self.sent_prefetch:
            self.connection.sendall(b"qos %d\n" % self.prefetch)
            self.sent_prefetch = self.prefetch
        for key, _ in self.selector.select(0.2):
            if key.data is None:
                self.receive()
            else:
                self.connection.sendall(b"ack %d\n" % self.pool.finish(key.data).tag)
                self.done += 1
        self.apply_due()


def main():
    worker = Worker(int(sys.argv[1]), int(sys.argv[2]))
    started = told = time.monotonic()
    while time.monotonic() - started < SECONDS:
        worker.step()
        if time.monotonic() - told > 2.0:
            told = time.monotonic()
            print(f"worker: {worker.done} tasks done, {len(worker.timer.queue)} have a time", flush=True)
    worker.connection.close()
    worker.pool.close()


if __name__ == "__main__":
    main()
