"""Sends requests one after the other, after a warm-up under the profiler"""

import argparse
import http.client
import json
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--seconds", type=float, default=24)
arguments = parser.parse_args()
connection = http.client.HTTPConnection("127.0.0.1", arguments.port)


def post(path, payload):
    body = json.dumps(payload)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


for number in range(3):
    post("/v1/completions", {"prompts": [number] * 24, "max_tokens": 16})
print(post("/start_profile", {}), flush=True)
started, count = time.monotonic(), 0
while time.monotonic() - started < arguments.seconds:
    answer = post("/v1/completions", {"prompts": list(range(count, count + 24)), "max_tokens": 48})
    count += 1
    if count % 10 == 0:
        print(f"{count} batches, last tokens {answer['tokens'][:4]}", flush=True)
print(f"{count * 24 * 48 / (time.monotonic() - started):.0f} tokens/s", flush=True)
print(post("/shutdown", {}), flush=True)
