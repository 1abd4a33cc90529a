"""The service that asks: every third request is a large one"""

import json
import socket
import sys
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
started, number, answered = time.monotonic(), 0, 0
while time.monotonic() - started < seconds:
    number += 1
    steps = 40 if number % 3 else 900
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=3.5) as connection:
            connection.sendall(json.dumps({"seed": number, "steps": steps}).encode() + b"\n")
            answered += bool(connection.makefile().readline())
    except OSError as error:
        print(f"request {number}: {error}", flush=True)
print(f"{answered} of {number} requests answered", flush=True)
