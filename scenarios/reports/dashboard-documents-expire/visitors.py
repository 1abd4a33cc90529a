"""Visitors in waves: each opens a session, moves the slider some times, and goes away"""

import json
import random
import socket
import sys
import threading
import time

SECONDS, WAVE_S = 32.0, 10.0


def visitor(name, port):
    source = random.Random(name)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection, connection.makefile("rb") as answers:
        for value in (1, source.randrange(2, 60), source.randrange(2, 60)):
            connection.sendall(json.dumps({"session": name, "slider": value}).encode() + b"\n")
            json.loads(answers.readline())


def main():
    started, number, pause = time.monotonic(), 0, threading.Event()
    while (now := time.monotonic() - started) < SECONDS:
        visitor(f"visitor-{number}", int(sys.argv[1]))
        number += 1
        pause.wait(0.12 if now % WAVE_S < 0.6 * WAVE_S else 1.2)
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.sendall(b'{"session": null}\n')


main()
