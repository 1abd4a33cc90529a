"""A worker: takes jobs from a queue, and performs each in a work horse of its own"""

import argparse
import os
import time

import numpy as np
import wire

WORK_S = 0.06


def simulate(seed):
    """The mean path of a random walk of some hundred prices"""
    source, until = np.random.default_rng(seed), time.monotonic() + WORK_S
    paths, rounds = np.zeros((200, 1000), dtype=np.float32), 0
    while rounds == 0 or time.monotonic() < until:
        paths += np.cumsum(source.standard_normal(paths.shape, dtype=np.float32), axis=1)
        rounds += 1
    paths /= rounds
    return paths.tobytes()


def perform(port, job):
    connection = wire.Connection(port)
    key = f"rq:results:{job['id']}"
    connection.call({"command": "setex", "key": key, "ttl": job["result_ttl"]}, simulate(job["seed"]))
    connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    arguments = parser.parse_args()
    connection, performed = wire.Connection(arguments.port), 0
    connection.call({"command": "hello"})
    while True:
        job, _ = connection.call({"command": "pop", "queue": "default"})
        if job["function"] == "stop":
            break
        horse = os.fork()
        if horse == 0:
            status = 1
            try:
                perform(arguments.port, job)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(horse, 0)
        if status:
            raise SystemExit(f"the work horse of job {job['id']} terminated unexpectedly: {status}")
        performed += 1
    connection.close()
    print(f"worker {arguments.name}: {performed} jobs", flush=True)


if __name__ == "__main__":
    main()
