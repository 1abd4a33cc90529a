"""The worker: imports what tasks need, forks its pool, and then passes messages of the broker on to it"""

import gc
import json
import multiprocessing
import socket
import sys
import time
from multiprocessing.connection import wait

import numpy as np
from providers import load_registry

CONCURRENCY, TASK_S = 3, 0.85


def run_task(registry, message):
    """Reads a table of the asked size, joins and aggregates it; the caller only gets a few numbers"""
    until, operator = time.monotonic() + TASK_S, registry[message["operator"]]
    source = np.random.default_rng(message["task"])
    table = source.random((message["rows"], 8), np.float32)
    weights = np.resize(np.array(operator.defaults(), np.float32), 8)
    groups, rounds = source.integers(0, 100, message["rows"]), 0
    while True:
        scores = table @ weights
        sums = np.bincount(groups, scores, 100)
        rounds += 1
        if time.monotonic() >= until:
            return {"task": message["task"], "largest": float(sums.max()), "rounds": rounds}


def pool_worker(connection, registry):
    while (message := connection.recv()) is not None:
        connection.send(run_task(registry, message))


def start_pool(registry):
    """What was imported so far is to be shared by all processes of the pool"""
    gc.collect()
    gc.freeze()
    context, members = multiprocessing.get_context("fork"), {}
    for number in range(CONCURRENCY):
        here, there = context.Pipe()
        process = context.Process(target=pool_worker, args=(there, registry), name=f"ForkPoolWorker-{number + 1}")
        process.start()
        there.close()
        members[here] = process
    return members


def main():
    started, registry = time.monotonic(), load_registry()
    print(f"{len(registry)} operators preloaded in {time.monotonic() - started:.1f} s", flush=True)
    members = start_pool(registry)
    idle, busy, done, more = list(members), [], 0, True
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as broker, broker.makefile("rw") as stream:
        while True:
            while idle and more:
                try:
                    stream.write("next\n")
                    stream.flush()
                    line = stream.readline()
                except ConnectionError:
                    line = ""
                more = bool(line)
                if more:
                    connection = idle.pop(0)
                    connection.send(json.loads(line))
                    busy.append(connection)
            if not busy:
                break
            for connection in wait(busy):
                result = connection.recv()
                busy.remove(connection)
                idle.append(connection)
                done += 1
                if done % 12 == 0:
                    print(f"{done} tasks, the last one {result}", flush=True)
    for connection, process in members.items():
        connection.send(None)
        process.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
