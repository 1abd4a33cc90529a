"""The central scheduler: workers tell it of their tasks, and it tells them what to run"""

import argparse
import collections
import json
import socketserver
import threading
import time

PENDING, RUNNING, DONE, FAILED = "PENDING", "RUNNING", "DONE", "FAILED"


class Task:
    def __init__(self, task_id, family, params, deps, worker):
        self.id, self.family, self.params, self.deps = task_id, family, params, deps
        self.status = PENDING
        self.stakeholders = {worker}
        self.workers = [worker]
        self.time = time.time()
        self.last_updated = self.time
        self.failures = collections.deque(maxlen=5)


class CentralPlannerScheduler:
    def __init__(self, remove_delay=600, worker_disconnect_delay=60):
        self.remove_delay, self.worker_disconnect_delay = remove_delay, worker_disconnect_delay
        self.tasks, self.pending, self.active = {}, collections.defaultdict(collections.deque), {}
        self.lock = threading.Lock()

    def prune(self):
        """Forgets tasks that no worker that is still there has an interest in"""
        now = time.time()
        gone = {name for name, seen in self.active.items() if now - seen > self.worker_disconnect_delay}
        for task in list(self.tasks.values()):
            task.stakeholders -= gone
            if not task.stakeholders and now - task.last_updated > self.remove_delay:
                del self.tasks[task.id]
        for name in gone:
            del self.active[name]

    def add_task(self, worker, task_id, family=None, params=None, deps=(), status=PENDING):
        self.active[worker] = time.time()
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id, family, params, deps, worker)
            self.pending[worker].append(task_id)
        task.stakeholders.add(worker)
        task.status, task.last_updated = status, time.time()
        return {}

    def get_work(self, worker):
        self.active[worker] = time.time()
        if not self.pending[worker]:
            return {"task_id": None}
        task = self.tasks[self.pending[worker].popleft()]
        task.status = RUNNING
        return {"task_id": task.id}

    def counts(self):
        found = collections.Counter(task.status for task in self.tasks.values())
        return ", ".join(f"{status} {count}" for status, count in sorted(found.items()))


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        scheduler = self.server.scheduler
        for line in self.rfile:
            call = json.loads(line)
            with scheduler.lock:
                answer = getattr(scheduler, call.pop("method"))(**call)
            self.wfile.write(json.dumps(answer).encode() + b"\n")
        self.server.left.release()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.scheduler, server.left = CentralPlannerScheduler(), threading.Semaphore(0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open(arguments.port_file, "w") as file:
            file.write(f"{server.server_address[1]}\n")
        left = 0
        while left < arguments.workers:
            left += server.left.acquire(timeout=5)
            with server.scheduler.lock:
                server.scheduler.prune()
                print(f"{len(server.scheduler.tasks)} tasks: {server.scheduler.counts()}", flush=True)
        server.shutdown()


if __name__ == "__main__":
    main()
