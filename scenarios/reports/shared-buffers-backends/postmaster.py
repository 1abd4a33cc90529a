"""The database: a postmaster with one buffer pool, which forks a backend for each connection"""

import json
import mmap
import os
import signal
import socket
import time

import numpy as np

BLOCK, RELATION, RELATIONS, QUERY_S = 8192, 512, 40, 0.05
BLOCKS = RELATION * RELATIONS


class BufferPool:
    """The shared buffers: a place for each block, and whether the block has been read"""

    def __init__(self):
        self.memory = mmap.mmap(-1, BLOCK * BLOCKS)
        self.valid = mmap.mmap(-1, BLOCKS)

    def block(self, number):
        start = number * BLOCK
        if not self.valid[number]:
            self.memory[start : start + BLOCK] = read_block(number)
            self.valid[number] = 1
        return np.frombuffer(self.memory, np.int32, BLOCK // 4, start)


def read_block(number):
    """A block of a relation from storage"""
    return np.random.default_rng(number).integers(0, 1000, BLOCK // 4, np.int32).tobytes()


def execute(pool, query):
    """A sequential scan: the sum over a relation, and again for as long as the query's other conditions take"""
    until, first = time.monotonic() + QUERY_S, query["relation"] % RELATIONS * RELATION
    total = sum(int(pool.block(number).sum()) for number in range(first, first + RELATION))
    while time.monotonic() < until:
        total ^= int(pool.block(first).max())
    return total


def backend(pool, connection):
    with connection, connection.makefile("rb") as queries:
        for line in queries:
            connection.sendall(json.dumps({"sum": execute(pool, json.loads(line))}).encode() + b"\n")


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    pool = BufferPool()
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                backend(pool, connection)
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    main()
