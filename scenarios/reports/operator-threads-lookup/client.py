"""Sends the rows of a table for scoring, one request after the other"""

import argparse
import hashlib
import http.client
import json
import random
import sys
import time

LASTS_S = 75


def token_of(subject, secret, rounds=800_000):
    return subject + "." + hashlib.pbkdf2_hmac("sha256", subject.encode(), secret, rounds).hex()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    with open(parser.parse_args().port_file) as file:
        port = int(file.read())
    rng = random.Random(1)
    token = token_of("borja", b"egi")
    scored, until = 0, time.monotonic() + LASTS_S
    while time.monotonic() < until:
        rows = [[rng.gauss(0, 1) for _ in range(32)] for _ in range(50)]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/score", json.dumps(rows), headers)
            scored += len(json.load(connection.getresponse())["scores"])
            connection.close()
        except OSError as error:
            print(f"after {scored} rows: {type(error).__name__}: {error}", flush=True)
            sys.exit(1)
    print(f"{scored} rows scored", flush=True)


if __name__ == "__main__":
    main()
