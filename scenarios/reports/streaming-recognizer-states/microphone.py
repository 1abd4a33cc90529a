"""Streams audio to the recognizer, and prints what it hears"""

import os
import socket
import subprocess
import sys
import time

import numpy as np

SECONDS, RATE, BLOCK = 40.0, 16_000, 4_000
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recognizer.py")


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    server = subprocess.Popen([sys.executable, SERVER, str(listener.getsockname()[1])])
    connection, _ = listener.accept()
    generator, started, block = np.random.default_rng(2), time.monotonic(), 0
    with connection, connection.makefile("rb") as answers:
        while time.monotonic() - started < SECONDS:
            moment = (np.arange(BLOCK) + block * BLOCK) / RATE
            tone = np.sin(2.0 * np.pi * (180.0 + 40.0 * np.sin(0.7 * moment)) * moment)
            samples = (6_000.0 * tone + generator.normal(0.0, 300.0, BLOCK)).astype(np.int16)
            connection.sendall(samples.tobytes())
            answer = answers.readline().decode().strip()
            block += 1
            if block % 50 == 0:
                print(f"{block * BLOCK / RATE:.1f} s: {answer}", flush=True)
        connection.shutdown(socket.SHUT_WR)
    print(f"{block} blocks", flush=True)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
