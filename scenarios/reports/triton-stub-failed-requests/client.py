"""Sends the images of a test set to the server; some of them have an alpha channel"""

import argparse
import json
import socket
import sys
import time

import numpy as np

SIDE, SECONDS = 700, 45.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    address = ("127.0.0.1", parser.parse_args().port)
    generator = np.random.default_rng(1)
    canvas = generator.random((4, SIDE, SIDE), dtype=np.float32)
    started, number, failed = time.monotonic(), 0, 0
    with socket.create_connection(address) as connection:
        answers = connection.makefile()
        while time.monotonic() - started < SECONDS:
            number += 1
            channels = 4 if number % 6 == 0 else 3
            image = np.ascontiguousarray(np.roll(canvas[:channels], number, axis=2))
            head = {"model": "classifier", "shape": image.shape, "bytes": image.nbytes}
            try:
                connection.sendall(json.dumps(head).encode() + b"\n")
                connection.sendall(image)
                line = answers.readline()
            except OSError as error:
                print(error, file=sys.stderr)
                line = ""
            if not line:
                print(f"request {number}: the server closed the connection", file=sys.stderr, flush=True)
                return 1
            failed += "error" in json.loads(line)
            if number % 50 == 0:
                print(f"{number} requests, {failed} failed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
