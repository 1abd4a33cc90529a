"""Agents with a short life: each loads a topic, searches it, and ends"""

import hashlib
import json
import socket
import sys
import time

SECONDS, STEP_S = 26.0, 0.025


def request(message):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as connection:
        connection.sendall(json.dumps(message).encode() + b"\n")
        with connection.makefile("rb") as answers:
            return json.loads(answers.readline())


def think(text):
    until, digest = time.monotonic() + STEP_S, text.encode()
    while time.monotonic() < until:
        digest = hashlib.sha256(digest * 20).digest()
    return digest.hex()[:8]


started, agents = time.monotonic(), 0
while time.monotonic() - started < SECONDS:
    session = request({"tool": "load", "text": f"topic {agents % 60}"})["session"]
    for question in range(3):
        best = request({"session": session, "tool": "search", "text": f"what is {agents} of {question}"})["best"]
        think(f"{agents} {best}")
    agents += 1
    if agents % 50 == 0:
        print(f"{agents} agents, best {best}", flush=True)
