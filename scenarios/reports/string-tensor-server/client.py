"""Sends tensors of strings over some connections: the first ones are small"""

import socket
import struct
import sys
import threading
import time

import numpy as np

RUN_S = 36
FIRST = [20_000, 60_000, 150_000, 250_000]
LENGTH = 92


def tensor(count, seed):
    letters = np.random.default_rng(seed).integers(97, 123, (count, LENGTH), dtype=np.uint8)
    whole = np.empty((count, 4 + LENGTH), dtype=np.uint8)
    whole[:, :4] = np.frombuffer(struct.pack("<I", LENGTH), dtype=np.uint8)
    whole[:, 4:] = letters
    return whole.tobytes()


def call(connection, payload, count):
    connection.sendall(struct.pack("<IQ", count, len(payload)))
    connection.sendall(payload)
    (mean,) = struct.unpack("<f", connection.recv(4, socket.MSG_WAITALL))
    return mean


def main():
    port, connections = int(sys.argv[1]), int(sys.argv[2])
    tensors = {count: tensor(count, count) for count in FIRST}
    end = time.monotonic() + RUN_S

    def stream():
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for count in FIRST:
                call(connection, tensors[count], count)
            while time.monotonic() < end:
                call(connection, tensors[FIRST[-1]], FIRST[-1])

    threads = [threading.Thread(target=stream) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
