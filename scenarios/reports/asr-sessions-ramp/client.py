"""The load test: each of up to sixteen clients sends one recording after the other"""

import argparse
import json
import random
import socket
import struct
import threading
import time

import numpy as np

CLIENTS, EVERY_S, SECONDS = 16, 0.7, 29.0
FEATURES = 80


def send_recordings(number, address, started, counts):
    lengths = random.Random(number)
    chunk = np.random.default_rng(number).standard_normal((40, FEATURES), dtype=np.float32).tobytes()
    head = struct.pack("<I", len(chunk))
    while time.monotonic() - started < SECONDS:
        with socket.create_connection(address) as connection, connection.makefile() as answers:
            connection.sendall(b"s")
            for _ in range(lengths.randint(8, 45)):
                connection.sendall(head + chunk)
                json.loads(answers.readline())
            connection.sendall(struct.pack("<I", 0))
            answers.read()
        counts[number] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    address = ("127.0.0.1", parser.parse_args().port)
    started, counts, threads = time.monotonic(), [0] * CLIENTS, []
    ramp = threading.Event()
    for number in range(CLIENTS):
        thread = threading.Thread(target=send_recordings, args=(number, address, started, counts))
        thread.start()
        threads.append(thread)
        print(f"{len(threads)} concurrent sessions", flush=True)
        ramp.wait(EVERY_S)
    for thread in threads:
        thread.join()
    with socket.create_connection(address) as connection:
        connection.sendall(b"q")
    print(f"{sum(counts)} recordings recognised", flush=True)


if __name__ == "__main__":
    main()
