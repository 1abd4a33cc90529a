"""Sequential completions, every prompt another one"""

import argparse
import json
import random
import socket
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--seconds", type=float, default=32)
arguments = parser.parse_args()
source = random.Random(3)
words = ["tensor", "kernel", "river", "paper", "cloud", "engine", "letter", "market", "signal", "garden"]
with socket.create_connection(("127.0.0.1", arguments.port)) as connection:
    answers = connection.makefile()
    started, count, reused = time.monotonic(), 0, 0
    while time.monotonic() - started < arguments.seconds:
        prompt = " ".join(source.choice(words) + str(source.randrange(1000)) for _ in range(40))
        connection.sendall(json.dumps({"prompt": prompt, "n_predict": 6}).encode() + b"\n")
        answer = json.loads(answers.readline())
        count += 1
        reused += answer["tokens_cached"]
        if count % 40 == 0:
            print(f"{count} completions, {reused} tokens from the cache: {answer['content']}", flush=True)
