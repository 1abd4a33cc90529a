"""Embeds events, and inserts them by way of a pool of connections"""

import collections
import json
import socket
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
SECONDS, RISE_S, STATEMENT_S = 40.0, 13.0, 0.09
SMALLEST, LARGEST = 1 << 18, 26 << 20
POOL = 6


class Buffer:
    def __init__(self):
        self.data = bytearray(8192)

    def window(self, size):
        if len(self.data) < size:
            self.data = bytearray((size + 65535) & ~65535)
        return memoryview(self.data)[:size]


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.write_buffer = Buffer()
        self.read_buffer = Buffer()

    def insert(self, rows, returning):
        head = {"rows": rows.nbytes, "returning": returning}
        self.socket.sendall(json.dumps(head).encode() + b"\n")
        with self.write_buffer.window(rows.nbytes) as window:
            window[:] = memoryview(rows).cast("B")
            self.socket.sendall(window)
        with self.read_buffer.window(returning + 8) as window:
            received = 0
            while received < len(window):
                count = self.socket.recv_into(window[received:])
                if count == 0:
                    raise ConnectionError("server closed the connection unexpectedly")
                received += count
            return bytes(window[-8:]).decode()


class Pool:
    def __init__(self, port, size):
        self.connections = collections.deque(Connection(port) for _ in range(size))

    def insert(self, rows, returning):
        connection = self.connections.popleft()
        try:
            return connection.insert(rows, returning)
        finally:
            self.connections.append(connection)


class Embedder:
    def __init__(self):
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 64)).eval()

    @torch.inference_mode()
    def embed(self, events, seconds):
        started, rounds = time.monotonic(), 0
        while rounds == 0 or time.monotonic() - started < seconds:
            events = 0.5 * (events + self.network(events))
            rounds += 1
        return events


def payload(elapsed, number):
    """Bytes of a statement: larger and larger at first, then small ones, and every 40th a large one"""
    if elapsed < RISE_S:
        return int(SMALLEST * (LARGEST / SMALLEST) ** (elapsed / RISE_S))
    if elapsed < RISE_S + 1.5 or number % 41 == 0:
        return LARGEST
    return SMALLEST * (1 + number % 5)


def main():
    pool, embedder = Pool(int(sys.argv[1]), POOL), Embedder()
    canvas = np.random.default_rng(4).standard_normal(LARGEST // 4, dtype=np.float32)
    started, number, total = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - started) < SECONDS:
        count = payload(elapsed, number) // 4
        rows = canvas[:count]
        first = torch.from_numpy(canvas[: 512 * 64]).view(512, 64)
        first.copy_(embedder.embed(first, STATEMENT_S))
        checksum = pool.insert(rows, count * 2 & ~63)
        total += rows.nbytes
        number += 1
        if number % 80 == 0:
            print(f"{number} statements, {total >> 20} MiB, last {checksum}", flush=True)
    print(f"{number} statements", flush=True)


if __name__ == "__main__":
    main()
