"""A worker: registers the tasks of an hour after the other, and runs what the scheduler gives it"""

import argparse
import hashlib
import json
import os
import random
import socket
import time
import zlib

PARTITIONS = 110


class RemoteScheduler:
    def __init__(self, port, worker):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")
        self.worker = worker

    def call(self, method, **payload):
        self.socket.sendall(json.dumps({"method": method, "worker": self.worker, **payload}).encode() + b"\n")
        return json.loads(self.file.readline())

    def close(self):
        self.file.close()
        self.socket.close()


def tasks_of(name, hour):
    """The aggregations of an hour, with the partitions that each of them reads"""
    for number in range(6):
        inputs = [
            f"s3://warehouse/{name}/source={number}/hour={hour:06d}/part-{part:05d}-{hour * 7919 % 9973}.avro"
            for part in range(PARTITIONS)
        ]
        yield f"Aggregate_{name}_{hour}_{number}", {"hour": hour, "source": number, "inputs": inputs}


def run(task_id, lines):
    digest = hashlib.sha256(task_id.encode())
    for start in range(0, len(lines), 20_000):
        block = zlib.compress(lines[start : start + 20_000], 6)
        digest.update(block)
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seconds", type=float, default=26)
    arguments = parser.parse_args()
    scheduler = RemoteScheduler(arguments.port, f"worker-{arguments.name}-{os.getpid()}")
    source = random.Random(arguments.name)
    lines = "\n".join(f"{source.random():.6f},{source.randrange(900)}" for _ in range(4_000)).encode()
    started, hour, last = time.monotonic(), 0, ""
    while time.monotonic() - started < arguments.seconds:
        hour += 1
        for task_id, params in tasks_of(arguments.name, hour):
            scheduler.call("add_task", task_id=task_id, family="Aggregate", params=params)
        while (task_id := scheduler.call("get_work")["task_id"]) is not None:
            last = run(task_id, lines)
            scheduler.call("add_task", task_id=task_id, status="DONE")
        if hour % 40 == 0:
            print(f"{arguments.name}: hour {hour} done, {last[:12]}", flush=True)
    scheduler.close()


if __name__ == "__main__":
    main()
