"""A reverse proxy's side: two upstream connections that are used for all requests"""

import hashlib
import json
import os
import random
import socket
import sys
import threading
import time

path, seconds = sys.argv[1], float(sys.argv[2])
started = time.monotonic()


def requests(number, port, answered):
    try:
        forward(number, port, answered)
    except OSError as error:
        print(f"upstream {number}: {error}", flush=True)


def forward(number, port, answered):
    source = random.Random(number)
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        while time.monotonic() - started < seconds:
            prompt = [source.randrange(2000) for _ in range(64)]
            connection.sendall(json.dumps({"prompt": prompt}).encode() + b"\n")
            line = answers.readline()
            if not line:
                break
            until = time.monotonic() + 0.012
            digest = line
            while time.monotonic() < until:
                digest = hashlib.sha256(digest).digest()
            answered[number] += 1


while not os.path.exists(path):
    if time.monotonic() - started > 15:
        sys.exit("the server did not start")
    time.sleep(0.1)
with open(path) as file:
    port = int(file.read())
answered = [0, 0]
threads = [threading.Thread(target=requests, args=(number, port, answered)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{sum(answered)} requests answered", flush=True)
