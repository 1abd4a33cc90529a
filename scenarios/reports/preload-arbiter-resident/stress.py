"""Asks for similar items, from two threads"""

import argparse
import json
import socket
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--seconds", type=float, default=25)
arguments = parser.parse_args()
started, answered = time.monotonic(), [0, 0]


def ask(thread):
    item = thread
    while time.monotonic() - started < arguments.seconds:
        with socket.create_connection(("127.0.0.1", arguments.port)) as connection:
            connection.sendall(json.dumps({"item": item, "count": 10}).encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
        item = answer["items"][-1] + thread
        answered[thread] += 1
        if answered[thread] % 100 == 0:
            print(f"thread {thread}: {answered[thread]} answers by worker {answer['pid']}", flush=True)


threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{sum(answered)} answers", flush=True)
